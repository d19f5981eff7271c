// How rustc passes values.
#pragma once

#include "kernel/arch/calling_convention.h"

namespace espy::kernel {

// Whether the place of an argument or a result is the same in all versions of rustc, and debug information tells it.
bool is_known_in_rust(const types::Types& types, const PassedValue& value);

}  // namespace espy::kernel
