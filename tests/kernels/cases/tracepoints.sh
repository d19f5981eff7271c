# The older ways to attach: system calls by one raw tracepoint, records through perf.
reading
expect '@\[dd\]: [0-9]+' "$ESPY" -e 'tracepoint:syscalls:sys_exit_read /args.ret > 0/ { @[comm] = sum(args.ret); }
  interval:ms:300 { exit() }'
expect '@\[tracepoint:syscalls:sys_enter_read\]' "$ESPY" -e 't:syscalls:sys_enter_* { @[probe] = count(); } i:ms:300 { exit() }'
expect '@\[' "$ESPY" -e 'tracepoint:timer:hrtimer_start { @[ksym(args->function)] = count(); } i:ms:300 { exit() }'
expect 'Attached [3-9] probes' "$ESPY" -e 'tracepoint:block:block_rq_i* { @[probe] = count(); } interval:ms:1 { exit(); }'
