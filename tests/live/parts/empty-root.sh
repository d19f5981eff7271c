#!/usr/bin/env bash
# empty-root.sh: runs the tracer where there is nothing else: a root directory with it, /proc and /sys, in memory.
# `empty-root.sh true` only tries whether that can be had. ESPY is the tracer.
set -e
[ -n "$IN_OWN_MOUNTS" ] || IN_OWN_MOUNTS=1 exec unshare --mount --propagation private "$0" "$@"
espy=$(realpath -- "$ESPY")
root=$(mktemp -d)
mount -t tmpfs none "$root"
trap 'umount -l "$root"; rmdir "$root"' EXIT
mkdir "$root/proc" "$root/sys"
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
cp "$espy" "$root/espy"
[ $# = 0 ] || exit 0
chroot "$root" /espy -e 'rawtracepoint:sys_enter /pid == getopt("pid", 0)/ { @ = count(); }
  interval:ms:200 { exit(); } end { printf("traced\n"); }' -- --pid=$PPID
ls "$root"
