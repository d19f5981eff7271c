// Constants of the kernel's interface that its headers and the C library's define as macros, so that BTF does not have
// them: AF_INET, O_CREAT, EPERM. They are ABI, so scripts can use them without headers. scripts/gen-constants writes
// the tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// The value on kernels for `arch`, whatever the CPU of this machine; nullopt if there is no such constant.
std::optional<int64_t> abi_constant(const Arch& arch, std::string_view name);

// All their names, for suggestions.
std::vector<std::string> abi_constants(const Arch& arch);

}  // namespace espy::kernel
