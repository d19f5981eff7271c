// @[comm] = count()
#include "trace.h"

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct comm);
  __type(value, u64);
} counts SEC(".maps");

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[1] != SYS_READ) return 0;
  struct comm comm = comm_of(bpf_get_current_task_btf());
  count_key(&counts, &comm);
  return 0;
}
