# What probes of functions cost is shown with their hooks; dangerous functions are refused. Other work on the machine may
# hide a cost, so each is asked for until it shows.
needs kprobe
costs() { "$ESPY" --info --cost >costs.out && grep -Eq '^ +[1-9][0-9]*  kprobe$' costs.out; }
wait_until costs || { cat costs.out; false; }
reading
kprobe_costs() {
  "$ESPY" --cost -e 'kprobe:vfs_read { @ = count() } interval:s:1 { exit() }' >costs.out 2>&1 &&
    grep -Eq '^kprobe:vfs_read +[1-9][0-9]* +[1-9][0-9]* +[1-9][0-9.]+ +[0-9.]+ +[0-9.]+ %' costs.out
}
wait_until kprobe_costs || { cat costs.out; false; }
expect 'a probe of .*queued_spin_lock_slowpath. can make the machine hang' \
  "$ESPY" -e 'kprobe:native_queued_spin_lock_slowpath { @ = count() }'
