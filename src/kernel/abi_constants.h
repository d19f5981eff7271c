// Constants of the kernel's interface that its headers define as macros, so that BTF does not have them: AF_INET,
// O_CREAT, EPERM. They are ABI, so scripts can use them without headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// The value on kernels for `arch`, whatever the CPU of this machine; nullopt if there is no such constant.
std::optional<int64_t> abi_constant(const Arch& arch, std::string_view name);

}  // namespace espy::kernel
