# The tools that time devices: a SCSI disk and an NVMe disk, both of which the kernel only plays.
# kernels: 6.1
tools=$(dirname -- "$ESPY")/../tools
table() { awk -v map="^@us\\\\[$1\\\\]:" '$0 ~ map { in_map = 1; next } /^$/ { in_map = 0 } in_map { sub(/^[^|]*[])] +/, ""); n += $1 } END { print n + 0 }' out; }
modprobe sd_mod && modprobe scsi_debug dev_size_mb=8 || skip "no scsi_debug"
wait_until sh -c 'test -b /dev/sd?'
disk=$(echo /dev/sd?)
"$ESPY" "$tools/scsilatency.bt" -c "dd if=/dev/zero of=$disk bs=64k count=20 oflag=direct status=none" >out
[ "$(table '[0-9]+, 0, 0, 0, write')" = 20 ] || { cat out; exit 1; }

modprobe -a nvmet nvme-loop || skip "no nvme-loop"
mount -t configfs none /sys/kernel/config 2>/dev/null || true
target=/sys/kernel/config/nvmet
mkdir $target/subsystems/espy
echo 1 >$target/subsystems/espy/attr_allow_any_host
mkdir $target/subsystems/espy/namespaces/1
echo -n "$disk" >$target/subsystems/espy/namespaces/1/device_path
echo 1 >$target/subsystems/espy/namespaces/1/enable
mkdir $target/ports/1
echo loop >$target/ports/1/addr_trtype
ln -s $target/subsystems/espy $target/ports/1/subsystems/espy
echo transport=loop,nqn=espy >/dev/nvme-fabrics
wait_until test -b /dev/nvme0n1
"$ESPY" "$tools/nvmelatency.bt" -c 'dd if=/dev/zero of=/dev/nvme0n1 bs=64k count=20 oflag=direct status=none' >out
[ "$(table 'nvme[0-9c]+n1, write')" = 20 ] || { cat out; exit 1; }
