#include "kernel/arch/tracepoint_frames.h"

#include "kernel/arch/aarch64/aarch64.h"

namespace espy::kernel {

// All kernels for arm64 have CONFIG_FRAME_POINTER; those of distributions for x86-64 have CONFIG_UNWINDER_ORC.
uint32_t tracepoint_frames(const Arch& arch) { return &arch == &kArm64 ? 1 : 0; }

}  // namespace espy::kernel
