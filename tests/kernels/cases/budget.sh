# A budget turns kprobes off for a part of the time: by detaching, so that calls are as fast as without.
needs kprobe
reading
expect '^@: [1-9][0-9]* \(sampled [0-9.]+%\)$' \
  "$ESPY" --budget=2% -e 'kprobe:vfs_read { @ = count() } interval:s:3 { exit() }'
expect 'about [1-9][0-9]* events? skipped while probes were off to keep the budget' \
  "$ESPY" --budget=2% -e 'kprobe:vfs_read { @ = count() } interval:s:3 { exit() }'
# Durations of a function are those of one call.
expect '^@stale: 0$' "$ESPY" --budget=1% -e 'config = { print_maps_on_exit = false }
  kprobe:vfs_read { @begun[tid] = nsecs }
  kretprobe:vfs_read { if (@begun[tid] == 0) { @unmatched++ } delete(@begun, tid) }
  interval:s:3 { exit() } end { printf("@stale: %d\n", @unmatched) }'
