// The procedure call standard (AAPCS64, 6.8.2 "Parameter passing rules" and 6.9 "Result return"), with the Linux
// compilers' treatment of empty classes, and that of rustc.
#include <algorithm>

#include "kernel/arch/aarch64/aarch64.h"
#include "kernel/arch/locations.h"

namespace espy::kernel::aarch64 {
namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kMostInRegisters = 16;
constexpr uint32_t kVectorRegisters = 8;
constexpr const char* kNoAddress = "is in memory at an address that the function does not return";

// The floating-point members of a value: of one size, at most four, and nothing else.
struct Floats {
  uint32_t count = 0;
  uint32_t size_bytes = 0;
  bool are_all = true;
};

// The members of a union overlap: the largest count is that of the value.
void add_floats(const types::Types& types, TypeId id, Floats& out) {
  const types::Type& type = types[id];
  switch (type.kind) {
    case Kind::kFloat:
      out.are_all &= is_float(type);
      out.are_all &= out.size_bytes == 0 || out.size_bytes == type.size_bytes;
      out.size_bytes = type.size_bytes;
      ++out.count;
      return;
    case Kind::kStruct: {
      const uint32_t before = out.count;
      uint32_t most = before;
      for (const types::Member& member : type.members) {
        if (type.is_union) out.count = before;
        add_floats(types, member.type, out);
        most = std::max(most, out.count);
      }
      out.count = most;
      out.are_all &= type.complete;
      return;
    }
    case Kind::kArray: {
      const uint32_t before = out.count;
      if (type.count > 0) add_floats(types, type.element, out);
      out.count = before + std::min<uint32_t>(type.count, kMostInRegisters) * (out.count - before);
      return;
    }
    default: out.are_all = false;
  }
}

// The vector registers that a value takes: 1 for a number, 1 to 4 for a homogeneous aggregate, 0 for other values.
uint32_t vector_registers_of(const types::Types& types, const PassedValue& value) {
  constexpr uint32_t kMostMembers = 4;
  if (value.is_by_reference) return 0;
  Floats found;
  add_floats(types, value.type, found);
  const bool has_padding = found.count * found.size_bytes != types[value.type].size_bytes;
  return found.are_all && found.count <= kMostMembers && !has_padding ? found.count : 0;
}

bool is_copied_to_memory(const types::Types& types, const PassedValue& value) {
  const types::Type& type = types[value.type];
  return value.is_by_reference ||
         (type.kind == Kind::kStruct && (!type.complete || type.size_bytes > kMostInRegisters));
}

uint32_t words(uint32_t size_bytes) { return (size_bytes + kWordBytes - 1) / kWordBytes; }

std::optional<ValueLocation> next_argument(const types::Types& types, const Arch& arch, Places& places,
                                           const PassedValue& value) {
  if (value.is_rust) return places.next_of_rust(types, value);
  const types::Type& type = types[value.type];
  if (const uint32_t count = vector_registers_of(types, value)) {
    if (count <= places.vectors_left()) {
      places.vectors += count;
      return std::nullopt;
    }
    places.vectors = kVectorRegisters;
    return places.on_stack(type.size_bytes, type.align_bytes);
  }
  if (is_copied_to_memory(types, value)) return places.by_address();
  if (type.size_bytes == 0) return ValueLocation{{LocationPiece{}}};  // not passed
  // In the next registers; on the stack, as all after it, if it does not fit in those left.
  const size_t count = words(type.size_bytes);
  if (type.align_bytes > kWordBytes) places.integers = (places.integers + 1) / 2 * 2;
  if (places.integers + count > arch.argument_offsets.size()) {
    places.integers = arch.argument_offsets.size();
    return places.on_stack(type.size_bytes, type.align_bytes);
  }
  places.integers += count;
  return in_registers(arch.argument_offsets.subspan(places.integers - count, count), type.size_bytes);
}

}  // namespace

// The address of a result in memory is in x8, which is no argument.
std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue&) {
  Places places(arch, kVectorRegisters);
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(next_argument(types, arch, places, argument));
  return out;
}

// A function need not preserve x8.
ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  const uint32_t size = types[result.type].size_bytes;
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  if (result.is_rust && !result.is_by_reference) return rust_result(types, result.type, registers);
  if (vector_registers_of(types, result) > 0) return {std::nullopt, kInVectorRegister};
  if (is_copied_to_memory(types, result)) return {std::nullopt, kNoAddress};
  if (size == 0) return {ValueLocation{{LocationPiece{}}}};
  return {in_registers(registers, size)};
}

}  // namespace espy::kernel::aarch64
