// /pid == 1/ { @ = count(); }
#include "trace.h"

struct counter counters[MAX_CPUS];

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[1] != SYS_READ) return 0;
  if (bpf_get_current_pid_tgid() >> 32 == 1) counters[this_cpu()].value += 1;
  return 0;
}
