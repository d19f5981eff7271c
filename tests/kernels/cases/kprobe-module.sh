# Functions of a module, by its name.
modprobe xfs || skip 'no module xfs'
expect '^kretprobe:xfs:xfs_file_open$' "$ESPY" -l 'kretprobe:xfs:xfs_file_o*'
expect 'Attached [0-9]+ probes' "$ESPY" -e 'kprobe:xfs:xfs_file_* { @ = count() } interval:ms:1 { exit() }'
