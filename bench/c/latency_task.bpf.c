// The latency of read(2), with the start in the task's own storage: the fastest way known.
#include "trace.h"

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, u32);
  __type(value, u64);
} starts SEC(".maps");

struct histogram {
  u64 buckets[BUCKETS];
} histograms[MAX_CPUS];

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct registers* registers, long number) {
  if (number != SYS_READ) return 0;
  u64* start = bpf_task_storage_get(&starts, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (start) *start = bpf_ktime_get_ns();
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(leave, struct registers* registers, long result) {
  if (registers->orig_ax != SYS_READ) return 0;
  u64* start = bpf_task_storage_get(&starts, bpf_get_current_task_btf(), 0, 0);
  if (!start || !*start) return 0;
  histograms[this_cpu()].buckets[log2_floor(bpf_ktime_get_ns() - *start)] += 1;
  *start = 0;
  return 0;
}
