// System calls by name and number, which differ between CPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// `name` is that of the system call table or of the call's tracepoints ("fstat" or "newfstat"); nullopt if unknown.
std::optional<uint32_t> find_syscall_number(const Arch& arch, std::string_view name);

// The name of its tracepoints ("newfstat" for fstat), as scripts and listings use it; nullopt if unknown.
std::optional<std::string_view> find_syscall_name(const Arch& arch, uint32_t number);

// Whether another CPU has a system call of this name, and `arch` has not, as with open on aarch64.
bool is_syscall_of_others(const Arch& arch, std::string_view name);

}  // namespace espy::kernel
