# Calls of kernel functions within each other, and as a graph.
# kernels: 6.12
reading
traced() { local pattern=$1; shift; expect "$pattern" "$ESPY" trace -q "$@"; }
traced 'rw_verify_area = 0' -s 'ksys_read(fd)' 'rw_verify_area(count, return)' -n 1
traced '^ +0\) .* \|  vfs_read\(.*count = 1.*\); /\* = 1 \*/$' --graph vfs_read -n 2
traced '"type": "span_exit"' -f json 'vfs_read(count, return)' -n 1
# Attaching takes long here, and many calls begin before the returns are probed.
expect 'rw_verify_area = 0' nice "$ESPY" trace -q -s 'ksys_read(fd)' 'rw_verify_area(count, return)' -n 1
