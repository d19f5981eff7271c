# capabilities.sh: what a user with CAP_BPF and CAP_PERFMON alone can do, and what it says where he cannot.
. "$(dirname "$0")/trace.sh"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
as=("${nobody[@]}" --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon)
trace raw -e 'rawtracepoint:sched_switch { print(("switch", args.prev.pid >= 0)); exit(); }'
said=$(trace user -c "$BIN/programs/calls 1" -e "uprobe:$BIN/programs/calls:work { print(str(arg1)); }")
if "$ESPY" --info | grep -q '^ *uprobe_multi *no' && grep -q 'user probes need CAP_SYS_ADMIN on this kernel' <<<"$said"; then
  echo name  # Linux before 6.6
else
  echo "$said"
fi
trace clock -e 'profile:hz:99 { @[kstack] = count(); } interval:ms:300 { print(("clock", len(@) > 0)); clear(@); exit(); }'
trace counter -c true -e 'software:page-faults:1 { printf("fault\n"); exit(); }'
trace iterator -e 'iter:task /ctx.task.pid == 2/ { printf("task %d\n", ctx.task.pid); }'
trace follow --follow -c 'sh -c "cat /dev/null; true"' -e 'rawtracepoint:sched_process_exec { printf("runs %s\n", comm); }'
trace tracepoint -e 'tracepoint:sched:sched_switch { }'
trace info --info
"${nobody[@]}" --inh-caps=+perfmon --ambient-caps=+perfmon "$ESPY" -e 'begin { }' 2>&1
