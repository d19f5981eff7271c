// What the calling conventions of CPUs share: locations in registers and in memory, and Rust. Internal to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernel/arch/arch.h"

namespace espy::kernel {

// Whether a value is passed as floating-point numbers are. __int128, which has a name, is passed like two integers.
inline bool is_float(const types::Type& type) { return type.kind == types::Kind::kFloat && type.name.empty(); }

// Where arguments go: in the next register of a kind, else on the stack.
class Places {
 public:
  Places(const Arch& arch, size_t vector_registers)
      : arch_(arch), vector_registers_(vector_registers), stack_at_(arch.stack_argument_start_bytes) {}

  size_t integers = 0;  // registers that are taken
  size_t vectors = 0;

  size_t integers_left() const { return arch_.argument_offsets.size() - integers; }
  size_t vectors_left() const { return vector_registers_ - vectors; }
  // Returns the location of a value of this size on the stack.
  types::ValueLocation on_stack(uint32_t size_bytes, uint32_t align_bytes);
  // Returns the location of a value whose address is the next argument.
  types::ValueLocation by_address();
  // Returns the place of an argument of a function of Rust; nullopt for one in vector registers. Requires that
  // is_known_in_rust().
  std::optional<types::ValueLocation> next_of_rust(const types::Types& types, const PassedValue& value);

 private:
  const Arch& arch_;
  size_t vector_registers_;
  uint32_t stack_at_;
};

// Returns the place of a result of Rust that is not by reference. `registers`: two, for integers.
ResultPlace rust_result(const types::Types& types, types::TypeId type, std::span<const uint32_t> registers);

// Returns the location of a value in consecutive registers, 8 bytes in each.
types::ValueLocation in_registers(std::span<const uint32_t> registers, uint32_t size_bytes);

// Returns the location of a value in memory, at a distance from the address in a register.
types::ValueLocation at_register(uint32_t register_offset_bytes, int64_t displacement);

}  // namespace espy::kernel
