// The CPUs that this folder describes.
#pragma once

#include <span>

#include "kernel/arch/arch.h"

namespace espy::kernel {

std::span<const Arch* const> all_arches();

}  // namespace espy::kernel
