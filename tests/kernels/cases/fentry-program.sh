# A BPF program as the function to stand on: one of our own, which carries type information where it has a loop over a map.
# kernels: 5.10 6.12 7.2
needs for_each_map_elem
"$ESPY" -e 'tracepoint:syscalls:sys_enter_read { @[pid] = 1; for ($kv : @) { @n++; } }' >traced.out 2>&1 &
traced=$!
reading
wait_until grep -q ^Attached traced.out
expect 'fentry:bpf:[0-9]+:espy_0' "$ESPY" -l 'fentry:bpf:*'
expect '@\[fentry:bpf:[0-9]+:espy_0\]: [0-9]+' "$ESPY" -e 'fentry:bpf:espy_0 { @[probe] = count(); } interval:s:1 { exit(); }'
kill -INT $traced
