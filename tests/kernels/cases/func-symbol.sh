# `func` is the address of the function beside values of ksym(), in maps, keys and comparisons; it prints as before.
# kernels: 5.10 6.12
reading
expect '^@name\[[0-9]+\]: vfs_read$' "$ESPY" -e 'begin { @name[0] = ksym(0); delete(@name, 0); } kprobe:vfs_read /comm == "dd"/ { @name[tid] = func; exit(); }'
expect '^@\[vfs_read\]: 2$' "$ESPY" -e 'kretprobe:vfs_read /comm == "dd"/ { @[func] = count(); @[ksym(kaddr("vfs_read"))] = count(); exit(); }'
expect '^1 1 vfs_read$' "$ESPY" -e 'fentry:vfs_read /comm == "dd"/ { printf("%d %d %s\n", func == kaddr("vfs_read"), func == "vfs_read", func); exit(); }'
