# Without BTF, kprobes have their numbered arguments, tracepoints their fields, and programs theirs.
# kernels: 5.10
mkdir empty
mount --bind empty /sys/kernel/btf || skip 'the types of this kernel cannot be hidden'
trap 'umount /sys/kernel/btf' EXIT
expect '@: 10$' "$ESPY" -c 'dd if=/dev/zero of=/dev/null bs=1 count=10 status=none' -e 'kprobe:vfs_read /comm == "dd" && arg2 == 1/ { @ = count(); }'
expect '@: 10$' "$ESPY" -c 'dd if=/dev/zero of=/dev/null bs=1 count=10 status=none' -e 'kprobe:vfs_read /comm == "dd" && arg2 == 1/ { @in[tid] = nsecs; } kretprobe:vfs_read /@in[tid]/ { @ = count(); delete(@in, tid); }'
expect '@: [1-9]' "$ESPY" -c 'cat /dev/null' -e 'kprobe:vfs_* { @ = count(); }'
expect 'vfs_read' "$ESPY" -c 'cat /dev/null' -e 'kprobe:vfs_read /pid == cpid/ { @[kstack] = count(); }'
expect '/.*cat' "$ESPY" -c 'cat /dev/null' -e 'tracepoint:sched:sched_process_exec { print(str(args.filename)); }'
expect 'no type information' "$ESPY" -e 'fentry:vfs_read { }'
