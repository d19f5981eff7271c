// @[kstack] = count()
#include "trace.h"

#define FRAMES 127

struct stack {
  u64 frames[FRAMES];
};

struct {
  __uint(type, BPF_MAP_TYPE_STACK_TRACE);
  __uint(max_entries, 4096);
  __type(key, u32);
  __type(value, struct stack);
} stacks SEC(".maps");

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
  u32 id = bpf_get_stackid(ctx, &stacks, 0);
  count_key(&counts, &id);
  return 0;
}
