# A kprobe on what its own action calls: each run of it misses one. Kernels that do not count that (before 6.7) say so.
expect 'kprobe:copy_from_kernel_nofault +[1-9][0-9]* +(\?|[1-9][0-9]*)' "$ESPY" -v -c 'dd if=/dev/zero of=/dev/null bs=1 count=100 status=none' \
  -e 'kprobe:copy_from_kernel_nofault { $x = *(uint64 *)kaddr("jiffies_64"); @ = count(); }
      tracepoint:syscalls:sys_enter_read /comm == "dd"/ { print(*(uint64 *)kaddr("jiffies_64")); }'
hits=$(sed -n 's/^kprobe:copy_from_kernel_nofault *\([0-9]*\) .*/\1/p' expect.out)
missed=$(sed -n 's/^kprobe:copy_from_kernel_nofault *[0-9]* *\([0-9?]*\).*/\1/p' expect.out)
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
