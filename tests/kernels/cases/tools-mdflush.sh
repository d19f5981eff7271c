# A mirror of two RAM disks, and a process that syncs it.
tools=$(dirname -- "$ESPY")/../tools
modprobe md_mod && [ ! -e /sys/kernel/btf/md_mod ] && skip "modules have no type information (Linux 5.11)"
modprobe -a brd raid1 || skip "no RAM disks or no RAID"
[ -b /dev/ram1 ] || skip "no second RAM disk"
echo md_espy >/sys/module/md_mod/parameters/new_array
array=/sys/block/md_espy/md
echo none >$array/metadata_version
echo raid1 >$array/level
echo 2 >$array/raid_disks
echo 8192 >$array/component_size
for disk in 0 1; do
  cat /sys/block/ram$disk/dev >$array/new_dev
  echo 0 >$array/dev-ram$disk/offset
  echo 8192 >$array/dev-ram$disk/size
  echo $disk >$array/dev-ram$disk/slot
done
echo active >$array/array_state
trap 'echo clear >$array/array_state' EXIT
mknod md_espy b $(tr : ' ' </sys/block/md_espy/dev)
expect '^[0-9:]{8} +[0-9]+ +dd +md_espy$' "$ESPY" "$tools/mdflush.bt" -c 'dd if=/dev/zero of=md_espy bs=4k count=1 conv=fsync status=none'
