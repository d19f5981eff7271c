// Constants of the kernel's interface that its headers and the C library's define as macros, so that BTF does not have
// them: AF_INET, O_CREAT, EPERM. They are ABI, so scripts can use them without headers. scripts/gen-constants writes
// the tables.
//
// The tables have all constants of the headers that gen-constants lists. A selection by hand would be shorter, but
// scripts use what they need of a header, and somebody would have to choose and to keep the names.
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

// ---- System calls by name and number, which differ between CPUs.

// `name` is from the system call table or from the call's tracepoints ("fstat" or "newfstat"); nullopt if unknown.
std::optional<uint32_t> find_syscall_number(const Arch& arch, std::string_view name);

// The name of its tracepoints ("newfstat" for fstat), as scripts and listings use it; nullopt if unknown.
std::optional<std::string_view> find_syscall_name(const Arch& arch, uint32_t number);

// Whether another CPU has a system call of this name, and `arch` has not, as with open on aarch64.
bool is_syscall_of_others(const Arch& arch, std::string_view name);

}  // namespace espy::kernel
