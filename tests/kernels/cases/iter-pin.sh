# A pinned iterator runs when its file is read, and the file goes with espy.
mount -t bpf bpf /sys/fs/bpf 2>/dev/null || true
timeout 60 "$ESPY" -B line -e 'iter:task:espy_tasks { printf("task %s\n", ctx.task.comm); }' >tasks.out 2>&1 &
wait_until test -e /sys/fs/bpf/espy_tasks
cat /sys/fs/bpf/espy_tasks
wait_until grep -q 'task bash' tasks.out
kill -INT %1
wait %1 || true
expect 'task bash' cat tasks.out
[ ! -e /sys/fs/bpf/espy_tasks ]
