// Constants of the kernel's interface that its headers define as macros, so that BTF does not hold them: AF_INET,
// O_CREAT, EPERM. They do not change, and scripts that include kernel headers for them need no headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espy::kernel {

std::optional<int64_t> abi_constant(std::string_view name);

}  // namespace espy::kernel
