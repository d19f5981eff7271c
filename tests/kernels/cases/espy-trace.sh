# Calls of kernel functions without a program: typed arguments, members, filters, returns.
# kernels: 6.1 7.2
reading
traced() { local pattern=$1; shift; expect "$pattern" "$ESPY" trace -q "$@"; }
traced 'vfs_read = [0-9]+  [0-9.]+[mun]*s$' vfs_read -n 1
traced 'dd +vfs_read\(count = 1, file->f_inode->i_ino = [0-9]+\)$' 'vfs_read(count == 1, count, file->f_inode->i_ino)' -n 1
traced 'dd +vfs_read\(file->f_path.dentry->d_name.name = "zero"\)$' 'vfs_read(count == 1, file->f_path.dentry->d_name.name)' -n 1
traced 'vfs_read = 1$' 'vfs_read(return == 1)' -n 1
traced 'dd +vfs_read\(count = 1\)$' --no-feature fentry 'vfs_read(count)' -n 1
