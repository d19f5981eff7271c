# All functions of a pattern share a program, and are told apart.
reading
expect '@\[kprobe:vfs_read\]: [0-9]+' "$ESPY" -e 'kprobe:vfs_* { @[probe] = count(); } interval:ms:500 { exit(); }'
