# Returns are seen while many threads wait in calls of the same function. Where the kernel follows too few calls, it counts
# those that it skips (kprobe_multi before Linux 6.14).
# kernels: 5.10 6.12 7.2
read=0
[ "$(uname -m)" != aarch64 ] || read=63
export read
cat >busy.sh <<'S'
mkfifo fifo
exec 3<>fifo
for ((i = 0; i < 40; i++)); do head -c 1 <&3 >/dev/null & done
for process in $(jobs -p); do
  until read -r number first _ <"/proc/$process/syscall" && [ "$number $first" = "$read 0x0" ]; do sleep 0.01; done
done
dd if=/dev/zero of=/dev/null bs=1 count=100 status=none
printf '%040d' 0 >&3
wait
S
each_return='kretprobe:vfs_read /comm == "dd" || comm == "head"/ { @[comm, retval == 1] = count(); }'
all='^@\[dd, (1|true)\]: 100$'
if has kprobe_multi && ! has fprobe_graph; then all='^WARNING: [0-9]+ calls? skipped by the kernel: too many were in progress'; fi
expect "$all" "$ESPY" -c 'bash busy.sh' -e "$each_return"
rm fifo
expect "$all" "$ESPY" -c 'bash busy.sh' -e "kprobe:vfs_read { @calls = count(); } $each_return"
rm fifo
expect "$all" "$ESPY" -c 'bash busy.sh' -e "${each_return/vfs_read/vfs_rea*}"
# Nothing is left in tracefs, also after a run that was killed.
! has kprobe_multi || exit 0
"$ESPY" -e 'kretprobe:vfs_read { @ = count(); } begin { printf("attached\n"); }' >killed &
espy=$!
wait_until grep -q attached killed
kill -KILL "$espy"
probes_are_gone() { ! grep -q espy /sys/kernel/tracing/kprobe_events; }
wait_until probes_are_gone
