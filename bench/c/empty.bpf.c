// Nothing: what the kernel's own bookkeeping reports for a program that only returns.
#include "trace.h"

SEC("raw_tp/sys_enter")
int enter(struct bpf_raw_tracepoint_args* ctx) { return 0; }
