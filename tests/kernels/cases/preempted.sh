# Kernels that preempt a thread in the middle of a program (HRTICK, on from Linux 7.2): what is missed meanwhile is counted, and without
# HRTICK nothing is.
features=/sys/kernel/debug/sched/features
[ -e $features ] || skip "this kernel has no $features"
before=$(grep -oE '(NO_)?HRTICK\b' $features)
trap 'echo $before >$features' EXIT
count() {
  expect '^tracepoint:syscalls:sys_enter_getppid +[0-9]+ +[0-9]+' "$ESPY" -v -c "$(dirname -- "$ESPY")/tests/live/programs/sender 10000 8" \
    -e 'tracepoint:syscalls:sys_enter_getppid /pid == cpid/ { @ = count(); }'
  hits=$(sed -n 's/^@: //p' expect.out)
  missed=$(sed -nE 's/^tracepoint:syscalls:sys_enter_getppid +[0-9]+ +([0-9]+) *$/\1/p' expect.out | head -n 1)
}
echo NO_HRTICK >$features
count
[ "$hits $missed" = "10000 0" ] || { cat expect.out; exit 1; }
echo HRTICK >$features
count
[ $((hits <= 10000 && hits + missed >= 10000)) = 1 ] || { cat expect.out; exit 1; }
