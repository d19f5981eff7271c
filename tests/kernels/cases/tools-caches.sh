# The tools that watch the page cache and the cache of names: over a file of 8 MiB on a file system whose pages are single
# ones, which is read from the disk, and again; and over 500 names that are not there.
# kernels: 6.12
tools=$(dirname -- "$ESPY")/../tools
command -v mkfs.minix >/dev/null || skip "mkfs.minix is not installed"
modprobe -a brd minix || skip "no RAM disks or no minix"
mkfs.minix /dev/ram0 >/dev/null || skip "no RAM disk"
mkdir dir
mount -t minix /dev/ram0 dir
trap 'umount dir' EXIT
dd if=/dev/zero of=dir/file bs=4k count=2048 status=none
cold() { umount dir && mount -t minix /dev/ram0 dir; }
read_all='dd if=dir/file of=/dev/null bs=4k status=none'
cold
expect '^[0-9:]{8} +[0-9]+ +2[01][0-9]{2} ' "$ESPY" "$tools/cachestat.bt" -c "$read_all"
expect '^[0-9:]{8} +[2-9][0-9]{3} +[0-9]{1,3} ' "$ESPY" "$tools/cachestat.bt" -c "$read_all"
cold
"$ESPY" "$tools/readahead.bt" -c "$read_all" >out
expect '^@read_ahead: 2[01][0-9]{2}$' cat out
expect '^@unused: [0-9]{1,2}$' cat out
cold
expect '^@unused: [1-9]' "$ESPY" "$tools/readahead.bt" -c "$read_all count=3"
cat >names.py <<'P'
import os
for name in range(500):
    os.path.exists("dir/nowhere-%d" % name)
P
"$ESPY" "$tools/dcstat.bt" -c 'python3 names.py' >out
awk '/^[0-9:]+ / { ok = $2 >= 500 && $4 >= 500 && $4 < 2000 } END { exit !ok }' out || { cat out; exit 1; }
[ "$(uname -r | cut -d. -f1-2)" != 5.10 ] || exit 0  # tables need Linux 5.13
cat dir/file >/dev/null
expect '^[0-9]+ +dd +2[0-9]{3} +[0-9]{1,3} ' "$ESPY" "$tools/cachetop.bt" -c "$read_all"
