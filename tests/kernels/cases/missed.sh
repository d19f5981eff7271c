# A kprobe on what its own action calls: each run of it misses one. Kernels that do not count that (before 6.7) say so.
expect 'kprobe:copy_from_kernel_nofault +[1-9][0-9]* +(\?|[1-9][0-9]*)' "$ESPY" -v -c 'dd if=/dev/zero of=/dev/null bs=1 count=100 status=none' \
  -e 'kprobe:copy_from_kernel_nofault { $x = *(uint64 *)kaddr("jiffies_64"); @ = count(); }
      tracepoint:syscalls:sys_enter_read /comm == "dd"/ { print(*(uint64 *)kaddr("jiffies_64")); }'
row=$(grep -m 1 '^kprobe:copy_from_kernel_nofault ' expect.out)  # of the loss report; that of the costs follows
hits=$(sed 's/^[^ ]* *\([0-9]*\) .*/\1/' <<<"$row")
missed=$(sed 's/^[^ ]* *[0-9]* *\([0-9?]*\).*/\1/' <<<"$row")
[ "$missed" = '?' ] || [ "$missed" = "$hits" ]
# The same of both edges of the call, where they are one program: its return is not seen then.
expect '(2 probes of one program|kprobe:copy_from_kernel_nofault) +[1-9][0-9]* +(\?|[1-9][0-9]*)' "$ESPY" -v -c 'dd if=/dev/zero of=/dev/null bs=1 count=100 status=none' \
  -e 'kprobe:copy_from_kernel_nofault { $x = *(uint64 *)kaddr("jiffies_64"); @ = count(); }
      kretprobe:copy_from_kernel_nofault { @ended = count(); }
      tracepoint:syscalls:sys_enter_read /comm == "dd"/ { print(*(uint64 *)kaddr("jiffies_64")); }'
# The same of fentry, which all kernels count.
expect 'fentry:vmlinux:copy_from_kernel_nofault +[1-9][0-9]* +[1-9][0-9]*' "$ESPY" -v -c 'dd if=/dev/zero of=/dev/null bs=1 count=100 status=none' \
  -e 'fentry:copy_from_kernel_nofault { $x = *(uint64 *)kaddr("jiffies_64"); }
      tracepoint:syscalls:sys_enter_read /comm == "dd"/ { print(*(uint64 *)kaddr("jiffies_64")); }'
# A user probe through perf (from Linux 6.0 on) misses nothing while another program is at work on the CPU, so that its 0 is true: it does not
# take part in the kernel's count of those that are. For then a kprobe on what its own action calls would be left out.
has uprobe_sleep || exit 0
calls=$(dirname -- "$ESPY")/tests/live/programs/calls
expect "uprobe:.*:work +50 +0 *$" "$ESPY" -v --no-feature uprobe_multi -c "$calls 50" \
  -e "uprobe:$calls:work { @at_work = 1; @ticks = *kptr((uint64 *)kaddr(\"jiffies_64\")); @at_work = 0; }
      kprobe:copy_from_kernel_nofault /pid == cpid && @at_work == 1/ { @within = count(); }"
grep -q '^@within: 50$' expect.out || { cat expect.out; exit 1; }
