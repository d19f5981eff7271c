# A kernel stack begins where the event happened, and shows that frame once.
# kernels: 5.10 6.12
reading
# begins REGEX SCRIPT: the first frame of the stack that the script prints first matches, and the second is another.
begins() {
  expect '^.*[a-z]' "$ESPY" -q -e "$2"
  grep '[a-z]' expect.out | head -n 2 | tr -d '\t ' >frames
  head -n 1 frames | grep -qE "^$1\+[0-9]+$" && [ "$(uniq frames | wc -l)" = 2 ] && return
  echo "expected $1, and another frame, from $2; got:"
  cat expect.out
  return 1
}
begins '__schedule' 'rawtracepoint:sched_switch { printf("%s\n", kstack(2)); exit(); }'
begins '__schedule' 'rawtracepoint:sched_switch { printf("%s%d\n", kstack(2), args.prev.pid); exit(); }'
begins '(syscall_trace_enter|trace_syscall_enter)[a-z0-9.]*' 'tracepoint:syscalls:sys_enter_read /comm == "dd"/ { printf("%s\n", kstack(2)); exit(); }'
# CPUs without static calls have a function that goes through what is attached to a tracepoint.
begins '(__traceiter_hrtimer_start|(__)?(hrtimer_start|enqueue_hrtimer)[a-z_]*)' 'tracepoint:timer:hrtimer_start /args.expires > 0/ { printf("%s\n", kstack(2)); exit(); }'
begins '(schedule|_*cond_resched|do_task_dead|preempt_schedule)[a-z_]*' 'software:cs:1 { printf("%s\n", kstack(2)); exit(); }'
begins 'vfs_read' 'kprobe:vfs_read { printf("%s\n", kstack(2)); exit(); }'
begins 'bpf_prog_[0-9a-f]+_[a-z_0-9]+' 'fentry:vfs_read { printf("%s\n", kstack(2)); exit(); }'
