// What the hand-written programs share. They are the yardstick: each does its job by the fastest way known, so that
// espy's distance from it is espy's own.
//
// They attach to the raw tracepoints sys_enter and sys_exit, as espy does, and pick out read(2) by its number.
#pragma once

// The helpers need the types.
// clang-format off
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define SYS_READ 0   // on x86-64
#define MAX_CPUS 64  // a power of two: the mask below stands in for a bounds check
#define BUCKETS 64

// The registers of a system call; the verifier checks offsets, not names.
struct registers {
  u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

// What is needed of the kernel's task; libbpf puts the running kernel's offsets in.
struct task_struct {
  u32 tgid;
  char comm[16];
} __attribute__((preserve_access_index));

struct comm {
  u64 words[2];
};

// Counters of one CPU, on cache lines of their own. In .bss, an mmapable array that programs address directly.
struct counter {
  u64 value;
  u64 padding[7];
};

static __always_inline u32 this_cpu(void) { return bpf_get_smp_processor_id() & (MAX_CPUS - 1); }

// By plain loads, which the verifier allows on the current task; the kernel keeps zeros behind the name.
static __always_inline struct comm comm_of(const struct task_struct* task) {
  const u64* words = (const u64*)task->comm;
  return (struct comm){{words[0], words[1]}};
}

// Index of the highest bit set, without branches.
static __always_inline u32 log2_floor(u64 value) {
  u32 shift, result;
  result = (value > 0xffffffff) << 5;
  value >>= result;
  shift = (value > 0xffff) << 4;
  value >>= shift;
  result |= shift;
  shift = (value > 0xff) << 3;
  value >>= shift;
  result |= shift;
  shift = (value > 0xf) << 2;
  value >>= shift;
  result |= shift;
  shift = (value > 0x3) << 1;
  value >>= shift;
  result |= shift;
  return (result | (value >> 1)) & (BUCKETS - 1);
}

// Adds one to a counter in a per-CPU hash.
static __always_inline void count_key(void* map, const void* key) {
  u64 one = 1;
  u64* counter = bpf_map_lookup_elem(map, key);
  if (counter)
    *counter += 1;
  else
    bpf_map_update_elem(map, key, &one, BPF_NOEXIST);
}

char program_license[] SEC("license") = "GPL";
