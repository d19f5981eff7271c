// @[pid, comm] = hist(args.count): the buckets live in the value of the key.
#include "trace.h"

struct key {
  struct comm comm;
  u64 pid;
};

struct histogram {
  u64 buckets[BUCKETS];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 4096);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct key);
  __type(value, struct histogram);
} histograms SEC(".maps");

static const struct histogram empty;

SEC("tp_btf/sys_enter")
int BPF_PROG(enter, struct registers* registers, long number) {
  if (number != SYS_READ) return 0;
  struct task_struct* task = bpf_get_current_task_btf();
  struct key key = {comm_of(task), task->tgid};
  struct histogram* histogram = bpf_map_lookup_elem(&histograms, &key);
  if (!histogram) {
    bpf_map_update_elem(&histograms, &key, &empty, BPF_NOEXIST);
    histogram = bpf_map_lookup_elem(&histograms, &key);
    if (!histogram) return 0;
  }
  histogram->buckets[log2_floor(registers->dx)] += 1;
  return 0;
}
