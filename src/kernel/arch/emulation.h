// Instructions that the kernel's uprobes emulate. They execute others out of their place, by a single step, which takes
// a second exception: on virtual machines tens of microseconds.
#pragma once

#include <cstddef>
#include <span>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// As far as the first bytes show.
bool is_emulated(const Arch& arch, std::span<const std::byte> code);

}  // namespace espy::kernel
