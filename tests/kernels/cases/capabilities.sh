# Who has CAP_BPF and CAP_PERFMON but is not root: kernel functions and raw tracepoints; perf events where the kernel's
# distributor lets him, and else the reason.
ulimit -l unlimited  # before Linux 5.11 maps count as locked memory
user=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=+bpf,+perfmon --ambient-caps=+bpf,+perfmon "$ESPY")
"${user[@]}" --version >/dev/null || skip 'the program cannot be run by others'
expect '@: [1-9]|only root may open perf events here .kernel.perf_event_paranoid = [0-9]' "${user[@]}" -c 'cat /dev/null' -e 'kprobe:vfs_read { @ = count(); }'
expect '@: [1-9]' "${user[@]}" -c 'cat /dev/null' -e 'fentry:vfs_read { @ = count(); }'
expect '@: [1-9]' "${user[@]}" -c 'cat /dev/null' -e 'rawtracepoint:sys_enter { @ = count(); }'
expect 'tick|only root may open perf events here .kernel.perf_event_paranoid = [0-9]' "${user[@]}" -e 'interval:ms:10 { printf("tick\n"); exit(); }'
expect 'tracepoints cannot be looked up' "${user[@]}" -e 'tracepoint:sched:sched_switch { exit(); }'
