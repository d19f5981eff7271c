# What probes of functions cost is shown with their hooks; dangerous functions are refused.
needs kprobe
hooks() { "$ESPY" --info --cost >hooks.out && grep -Eq '^ +[1-9][0-9]*  kprobe$' hooks.out; }
wait_until hooks || { cat hooks.out; false; }  # other work on the machine may hide a cost
reading
expect '^kprobe:vfs_read +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9.]+ +[0-9.]+ +[0-9.]+%' \
  "$ESPY" --cost -e 'kprobe:vfs_read { @ = count() } interval:s:1 { exit() }'
expect 'a probe of .*queued_spin_lock_slowpath. can make the machine hang' \
  "$ESPY" -e 'kprobe:native_queued_spin_lock_slowpath { @ = count() }'
