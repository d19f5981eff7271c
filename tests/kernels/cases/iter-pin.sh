# A pinned iterator runs when its file is read, and the file goes with espy.
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || true
timeout 20 "$ESPY" -e 'iter:task:espy_tasks { printf("task %s\n", ctx.task.comm); }' >tasks.out 2>&1 &
for i in 1 2 3 4 5 6 7 8 9 10; do [ -e /sys/fs/bpf/espy_tasks ] && break; sleep 0.5; done
cat /sys/fs/bpf/espy_tasks
sleep 1
kill -INT %1
wait %1 || true
expect 'task bash' cat tasks.out
[ ! -e /sys/fs/bpf/espy_tasks ]
