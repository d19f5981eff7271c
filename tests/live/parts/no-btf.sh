# no-btf.sh: what a kernel that tells no types can do, and what it says where it cannot. To be run by unshare -m.
. "$(dirname "$0")/trace.sh"
empty=$(mktemp -d)
mount --bind "$empty" /sys/kernel/btf
trace fields -c 'cat /dev/null' -e 'tracepoint:sched:sched_process_exec /pid == cpid/ { printf("%s\n", str(args.filename)); exit(); }'
trace syscall -c 'cat /dev/null' -e 'tracepoint:syscalls:sys_enter_openat /pid == cpid && str(args.filename) == "/dev/null"/ { print(str(args.filename)); }'
trace raw -c 'cat /dev/null' -e 'rawtracepoint:sched_process_exec /pid == cpid/ { print(("argument", arg0 != 0)); exit(); }'
trace user -c "$BIN/programs/calls 1" -e "uprobe:$BIN/programs/calls:work { print(str(arg1)); }"
trace stacks -c 'cat /dev/null' -e 'tracepoint:syscalls:sys_enter_openat /pid == cpid/ { print(("stack", len(ustack) > 0)); exit(); }'
trace ids -e 'begin { print((pid > 1, comm)); }'
trace maps -e 'begin { for ($i : 0..3) { @[$i] = count(); } for ($kv : @) { print(("map", $kv)); } clear(@); }'
trace names -e 'rawtracepoint:sched_switch { print(args.prev); }'
trace member -e 'begin { print(curtask.pid); }'
trace type -e 'begin { print(((struct task_struct *)curtask).pid); }'
trace task -e 'begin { print(ppid); }'
trace iterator -e 'iter:task { }'
trace function -e 'fentry:vfs_read { }'
trace follow --follow -c true -e 'tracepoint:sched:sched_process_exec { }'
trace layout -l 'struct task_struct'
rmdir "$empty"
