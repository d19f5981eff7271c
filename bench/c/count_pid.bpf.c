// @[pid] = count()
#include "trace.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, u32);
  __type(value, u64);
} counts SEC(".maps");

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[1] != SYS_READ) return 0;
  u32 pid = bpf_get_current_pid_tgid() >> 32;
  count_key(&counts, &pid);
  return 0;
}
