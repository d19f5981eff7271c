# Calls of kernel functions without a program: typed arguments, members, filters, returns, order, graph.
reading
traced() { local pattern=$1; shift; expect "$pattern" "$ESPY" trace -q "$@"; }
traced 'vfs_read = [0-9]+  [0-9.]+[mun]*s$' vfs_read -n 2
traced '^ +\.f_mode = [0-9]+,$' vfs_read -n 1
traced 'dd +vfs_read\(count = 1, file->f_inode->i_ino = [0-9]+\)$' 'vfs_read(count == 1, count, file->f_inode->i_ino)' -n 1
traced 'vfs_read = 1$' 'vfs_read(return == 1)' -n 1
traced 'rw_verify_area = 0' -s ksys_read vfs_read 'rw_verify_area(count, return)' -n 3
traced '^ +0\) .* \|  vfs_read\(.*count = 1.*\); /\* = 1 \*/$' --graph 'vfs_read' -n 2
traced '"type": "span_exit"' -f json vfs_read -n 2
traced 'dd +sys_enter_read\(.*count = 1\)' t:syscalls:sys_enter_read -n 1
traced 'dd +vfs_read\(count = 1\)$' --no-feature fentry 'vfs_read(count)' -n 1
if "$ESPY" --info | grep -q 'kprobe_multi.*yes'; then
  traced '^ +0\) .* \|    vfs_' --graph 'vfs_*' -n 30
fi
