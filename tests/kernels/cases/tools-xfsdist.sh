# Reads and writes on a file system made for it.
tools=$(dirname -- "$ESPY")/../tools
command -v mkfs.xfs >/dev/null || skip "mkfs.xfs is not installed (xfsprogs)"
modprobe -a xfs loop
mount -t tmpfs none /mnt
truncate -s 400M /mnt/disk
mkfs.xfs -q /mnt/disk
mkdir /mnt/xfs
losetup /dev/loop0 /mnt/disk
mount /dev/loop0 /mnt/xfs
trap 'umount /mnt/xfs; losetup -d /dev/loop0; umount /mnt' EXIT
"$ESPY" "$tools/xfsdist.bt" -c 'sh -c "dd if=/dev/zero of=/mnt/xfs/file bs=4k count=64 conv=fsync; dd if=/mnt/xfs/file of=/dev/null"' >out 2>&1
for function in xfs_file_read_iter xfs_file_write_iter xfs_file_open xfs_file_fsync; do
  expect "^@us\[$function\]:" cat out
done
