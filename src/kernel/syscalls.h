// Syscalls by name and number. Names are those of the system call table or of its tracepoints, which differ in a few.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espy::kernel {

std::optional<uint32_t> find_syscall_number(std::string_view name);
// The name its tracepoints have ("newfstat" for fstat), as scripts and listings use it.
std::optional<std::string_view> find_syscall_name(uint32_t number);

}  // namespace espy::kernel
