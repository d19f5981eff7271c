// The latency of read(2), with a hash from the thread's id to its start: what the script says, literally.
#include "trace.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, u32);
  __type(value, u64);
} starts SEC(".maps");

struct histogram {
  u64 buckets[BUCKETS];
} histograms[MAX_CPUS];

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[1] != SYS_READ) return 0;
  u32 tid = bpf_get_current_pid_tgid();
  u64 now = bpf_ktime_get_ns();
  bpf_map_update_elem(&starts, &tid, &now, BPF_ANY);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct registers* registers, long result) {
  if (registers->orig_ax != SYS_READ) return 0;
  u32 tid = bpf_get_current_pid_tgid();
  u64* start = bpf_map_lookup_elem(&starts, &tid);
  if (!start) return 0;
  histograms[this_cpu()].buckets[log2_floor(bpf_ktime_get_ns() - *start)] += 1;
  bpf_map_delete_elem(&starts, &tid);
  return 0;
}
