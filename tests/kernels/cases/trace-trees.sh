# Of a hundred trees of kernel functions, the one whose condition holds is shown; of a user function, too, with the
# kernel's below it.
# kernels: 6.1 6.12 7.2
head -c 100 /dev/zero >hundred
read_it='dd if=hundred of=/dev/null bs=1 status=none'
trees() { local pattern=$1; shift; expect "$pattern" "$ESPY" trace -q -v --graph -c "$read_it" "$@"; }
trees '^trees: 101 begun, 1 shown, 100 dropped, 0 left without a return, 0 in progress$' \
  --when 'return == 0' 'vfs_read(count == 1)' rw_verify_area
grep -Eq '^ +[0-9]+\) .* \|  vfs_read\(.*count = 1.*\) \{$' expect.out
grep -Eq '^ +[0-9]+\) .* \|    rw_verify_area\(.*\); /\* = 0 \*/$' expect.out
test "$(grep -c 'vfs_read(' expect.out)" = 1
trees '^trees: 101 begun, 1 shown, 100 dropped, 0 left' --no-feature fentry --before 1 --when 'return < count' \
  'vfs_read(count == 1)' 'rw_verify_*'
test "$(grep -c 'vfs_read(' expect.out)" = 1
grep -Eq '^ +[0-9]+\) .* \|  rw_verify_area\(\);$' expect.out
trees '^trees: .* shown, .* 0 left' --when 'return == 0' libc:read vfs_read
grep -Eq '^ +[0-9]+\) .* \|  read\(.*\) \{$' expect.out
grep -Eq '^ +[0-9]+\) .* \|    vfs_read\(.*\); /\* = 0 \*/$' expect.out
# Roots whose return is not seen: sooner or later, as the kernel shifts the stack of each system call at random, a call
# from further up on the stack is a root again. Calls until then may count as parts of the tree that was left.
head -c 3000 /dev/zero >many
read_many='dd if=many of=/dev/null bs=1 status=none'
left='^trees: [0-9]+ begun, [0-3] shown, [1-9][0-9]* dropped, [1-9][0-9]* left without a return, 0 in progress$'
expect "$left" "$ESPY" -q -v -c "$read_many" -e 'rawtracepoint:sched_process_exit { span_drop(); }
  fentry:vfs_read /pid == cpid/ { span_hold(); span_enter("read"); }
  fexit:vfs_read /pid == cpid && args.count == 1/ { span_exit("%d", retval); span_release(retval == 0); }'
expect "$left" "$ESPY" -q -v -c "$read_many" -e 'rawtracepoint:sched_process_exit { span_drop(); }
  kprobe:vfs_read /pid == cpid/ { span_hold(); span_enter("read"); }
  kretprobe:vfs_read /pid == cpid && retval <= 1/ { span_exit("%d", retval); span_release(retval == 0); }'
