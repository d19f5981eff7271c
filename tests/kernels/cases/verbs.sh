# Verbs for kernel functions: count, latency, stacks and args of known calls, with a wildcard, and with -p.
# kernels: 6.12
reader="dd if=/dev/zero of=/dev/null bs=1 count=500 status=none"
expect '^@calls\[vfs_read\]: 50[0-9]$' "$ESPY" count -q -c "$reader" vfs_read
expect '^@calls_by_function\[vfs_read\]: 50[0-9]$' "$ESPY" count -q -c "$reader" 'vfs_rea*'
expect '^@calls_ns: \{ .count = 50[0-9],' "$ESPY" latency -q -c "$reader" vfs_read
expect '^\[1\] +500 ' "$ESPY" args -q -c "$reader" 'vfs_read(count)'
expect ' 500 .*vfs_read' "$ESPY" stacks -q --kstack -c "$reader" 'vfs_read(count == 1)'

reading
(until [ -e go ]; do sleep 0.1; done; exec dd if=/dev/zero of=/dev/null bs=1 count=700 status=none) &
one=$!
"$ESPY" count -p $one 'vfs_read(count == 1)' >counted 2>said &
espy=$!
wait_until grep -q Attached said
touch go
wait $espy
grep -q '^@calls\[vfs_read(count == 1)\]: 700$' counted || { cat counted said; exit 1; }
