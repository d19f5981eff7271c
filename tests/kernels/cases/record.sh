# Functions of the kernel, raw tracepoints and samples are recorded: arguments, structs behind pointers, results, stacks.
needs kprobe
expect 'Recorded [1-9]' "$ESPY" record -o probes.rec --kstack -c 'cat /etc/passwd' kprobe:vfs_read kretprobe:vfs_read rawtracepoint:sched_process_exit software:page-faults:1
expect '@\[cat, 131072\]: [1-9]' "$ESPY" -i probes.rec -e 'kprobe:vfs_read { @[comm, arg2] = count(); }'
expect '@\[0\]: [1-9]' "$ESPY" -i probes.rec -e 'kretprobe:vfs_read { @[retval] = count(); }'
expect 'vfs_read\+' "$ESPY" -i probes.rec -e 'kprobe:vfs_read { @[kstack(1)] = count(); }'
expect '@: [1-9]' "$ESPY" -i probes.rec -e 'software:page-faults:1 { @ = count(); }'
expect '`kprobe:vfs_write` was not recorded' "$ESPY" -i probes.rec -e 'kprobe:vfs_write { }'
if has fentry; then
  expect 'Recorded [1-9]' "$ESPY" record -o typed.rec -c 'cat /etc/passwd' fexit:vfs_read rawtracepoint:sched_process_exit
  expect '@\[131072, 0\]: [1-9]' "$ESPY" -i typed.rec -e 'fexit:vfs_read { @[args.count, retval] = count(); }'
  expect '@\[true\]: [1-9]' "$ESPY" -i typed.rec -e 'fexit:vfs_read { @[args.file->f_mode != 0] = count(); }'
  expect '`espy record --depth N`' "$ESPY" -i typed.rec -e 'rawtracepoint:sched_process_exit { print(args.p->comm); }'
  echo 'rawtracepoint:sched_process_exit { @[args.p->comm] = count(); }' >script.bt
  expect 'Recorded [1-9]' "$ESPY" record -o script.rec -c 'cat /etc/passwd' --for script.bt
  expect '@\[cat\]: 1' "$ESPY" -i script.rec script.bt
fi
