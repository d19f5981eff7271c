// Frames of the kernel's stack between a tracepoint and bpf_trace_runN(), which runs the programs attached to it.
#pragma once

#include <cstdint>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// 1 where __bpf_trace_NAME() has a frame: kernels that need frame pointers are compiled with
// -fno-optimize-sibling-calls, so that it does not end in a jump. 0 otherwise.
uint32_t tracepoint_frames(const Arch& arch);

}  // namespace espy::kernel
