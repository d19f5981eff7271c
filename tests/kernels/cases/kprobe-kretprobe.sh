# Entry and return of a function, by thread.
reading
expect '@us\[[0-9]+, dd\]' "$ESPY" -e 'kprobe:vfs_read { @start[tid] = nsecs; }
  kretprobe:vfs_read /@start[tid]/ { @us[pid, comm] = hist((nsecs - @start[tid]) / 1000); delete(@start[tid]); }
  interval:ms:500 { exit(); }'
