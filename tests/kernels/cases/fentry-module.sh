# A function of a module needs the type information of that module.
modprobe xfs || skip 'no module xfs'
[ -e /sys/kernel/btf/xfs ] || {
  expect 'no type information of `xfs_file_open` of the module xfs, which fentry needs' "$ESPY" -e 'fentry:xfs:xfs_file_open { print(1) }'
  exit
}
expect 'Attached 2 probes' "$ESPY" -e 'fentry:xfs:xfs_file_open { print(1) } interval:ms:10 { exit() }'
