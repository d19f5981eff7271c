// What the calling conventions of CPUs share: locations in registers and in memory, and Rust's pairs. Internal to the
// folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "kernel/arch/calling_convention.h"

namespace espy::kernel {

// Whether a value is passed as floating-point numbers are. That of __int128, which has a name, is as two integers are.
inline bool is_float(const types::Type& type) { return type.kind == types::Kind::kFloat && type.name.empty(); }

// The scalars of a value, from their offset to their size in bytes. Variants of a Rust enum overlap.
using Scalars = std::map<uint32_t, uint32_t>;

// Returns the scalars of a struct that Rust passes in two registers, one scalar in each; nullopt for other values.
std::optional<Scalars> scalar_pair(const types::Types& types, const PassedValue& value);

// Returns the location of a value with a scalar in each of two registers.
types::ValueLocation in_register_pair(const Scalars& scalars, uint32_t first_register, uint32_t second_register,
                                      uint32_t size_bytes);

// Returns the location of a value in consecutive registers, 8 bytes in each.
types::ValueLocation in_registers(std::span<const uint32_t> registers, uint32_t size_bytes);

// Returns the location of a value in memory, at a distance from the address in a register.
types::ValueLocation at_register(uint32_t register_offset_bytes, int64_t displacement);

}  // namespace espy::kernel
