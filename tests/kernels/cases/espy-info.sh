# What a name stands for, and how it can be traced.
# kernels: 5.10
expect '^ssize_t vfs_read\(struct file \*file, char \*buf, size_t count, loff_t \*pos\);$' "$ESPY" info vfs_read
expect '^    fexit:vmlinux:vfs_read$' "$ESPY" info vfs_read
expect '^    kretprobe:vfs_read$' "$ESPY" info vfs_read
expect 'did you mean `vfs_read`' "$ESPY" info vfs_raed
modprobe xfs || skip 'no module xfs'
expect '^in module xfs$' "$ESPY" info xfs_file_open
