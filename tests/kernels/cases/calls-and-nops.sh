# kernels: 5.10 6.12 7.2
# Forged system calls do not count, and a probe on a nop leaves the program right: kernels treat both in different ways.
programs=$(dirname -- "$ESPY")/../tests/worlds/programs
cc -O1 -w -o foreign_calls "$programs/foreign_calls.c" && cc -O1 -w -o red_zone "$programs/red_zone.c" ||
  skip "there is no compiler for these programs"
./foreign_calls >out || skip "the kernel has no system calls of i386"
# Of getpid, each call has an entry and a return. Linux 7.2 skips and counts an event where the program is preempted.
expect '^@calls: 2[0-4]$' "$ESPY" -c ./foreign_calls -e 'tracepoint:syscalls:sys_enter_write /pid == cpid/ { @begun = 1; }
  tracepoint:syscalls:sys_enter_getpid,tracepoint:syscalls:sys_exit_getpid,tracepoint:syscalls:sys_enter_execve,
  tracepoint:syscalls:sys_enter_kill /pid == cpid && @begun/ { @calls = count(); } end { clear(@begun); }'
expect '^wrong results: 0$' "$ESPY" -c ./red_zone -e 'uprobe:./red_zone:leaf+5 { @ = count(); }'
grep -q '^@: 1000$' expect.out
