#!/bin/sh
# cgroups_made.sh FILE: makes a control group of version 2, moves a process into it, which works for 0.5 s, and removes it. Writes
# the number of the process, the name of the group, and the microseconds of CPU time that the kernel has counted for it.
# Without FILE it only tells whether it can.
set -e
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$root" ] && [ -w "$root/cgroup.procs" ]
[ $# = 1 ] || exit 0
name=espy-tool-$$
mkdir "$root/$name"
# shellcheck disable=SC2016  # the inner shell expands
sh -c 'echo $$ >"$1/cgroup.procs"; exec timeout 0.5 sh -c "while :; do :; done"' sh "$root/$name" & pid=$!
wait $pid || true
used=$(awk '$1 == "usage_usec" { print $2 }' "$root/$name/cpu.stat")
sleep "${LINGER:-0}"
until rmdir "$root/$name"; do sleep 0.1; done
echo "$pid $name ${used:-0}" >"$1"
