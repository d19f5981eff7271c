// The procedure call standard (AAPCS64, 6.8.2 "Parameter passing rules" and 6.9 "Result return"), with the Linux
// compilers' treatment of empty classes, and rustc's convention for pairs of numbers.
#include <algorithm>

#include "kernel/arch/aarch64/aarch64.h"
#include "kernel/arch/locations.h"

namespace espy::kernel::aarch64 {
namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

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

class ArgumentAssigner {
 public:
  ArgumentAssigner(const types::Types& types, const Arch& arch)
      : types_(types), arch_(arch), stack_at_(arch.stack_argument_start_bytes) {}

  std::optional<ValueLocation> next(const PassedValue& value) {
    const types::Type& type = types_[value.type];
    if (const uint32_t count = vector_registers_of(types_, value)) {
      if (vectors_ + count <= kVectorRegisters) {
        vectors_ += count;
        return std::nullopt;
      }
      vectors_ = kVectorRegisters;
      return on_stack(type.size_bytes, type.align_bytes);
    }
    if (is_copied_to_memory(types_, value)) return by_address();
    if (type.size_bytes == 0) return ValueLocation{{LocationPiece{}}};  // not passed
    return in_order(value);
  }

 private:
  static uint32_t words(uint32_t size_bytes) { return (size_bytes + kWordBytes - 1) / kWordBytes; }

  // A copy in memory, whose address is passed.
  ValueLocation by_address() {
    if (integers_ < arch_.argument_offsets.size()) return at_register(arch_.argument_offsets[integers_++], 0);
    ValueLocation out = on_stack(kWordBytes, kWordBytes);
    out.pieces[0].steps.push_back({Op::kRead, kWordBytes});
    return out;
  }

  // In the next registers; on the stack, as all after it, if it does not fit in those left.
  ValueLocation in_order(const PassedValue& value) {
    const types::Type& type = types_[value.type];
    const size_t count = words(type.size_bytes);
    const auto pair = scalar_pair(types_, value);
    if (type.align_bytes > kWordBytes) integers_ = (integers_ + 1) / 2 * 2;
    const size_t needed = pair ? 2 : count;
    if (integers_ + needed > arch_.argument_offsets.size()) {
      integers_ = arch_.argument_offsets.size();
      return on_stack(type.size_bytes, type.align_bytes);
    }
    const auto registers = arch_.argument_offsets.subspan(integers_, needed);
    integers_ += needed;
    return pair ? in_register_pair(*pair, registers[0], registers[1], type.size_bytes)
                : in_registers(registers, type.size_bytes);
  }

  ValueLocation on_stack(uint32_t size_bytes, uint32_t align_bytes) {
    if (align_bytes > kWordBytes) stack_at_ = (stack_at_ + 15) / 16 * 16;
    const uint32_t at = stack_at_;
    stack_at_ += words(size_bytes) * kWordBytes;
    return at_register(arch_.stack_pointer_offset, at);
  }

  const types::Types& types_;
  const Arch& arch_;
  size_t integers_ = 0;
  size_t vectors_ = 0;
  uint32_t stack_at_;
};

}  // namespace

// The address of a result in memory is in x8, which is no argument.
std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue&) {
  ArgumentAssigner places(types, arch);
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(places.next(argument));
  return out;
}

// A function need not preserve x8.
ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  const uint32_t size = types[result.type].size_bytes;
  if (vector_registers_of(types, result) > 0) return {std::nullopt, kInVectorRegister};
  if (is_copied_to_memory(types, result)) return {std::nullopt, kNoAddress};
  if (size == 0) return {ValueLocation{{LocationPiece{}}}};
  if (const auto pair = scalar_pair(types, result))
    return {in_register_pair(*pair, arch.return_value_offset, arch.second_return_value_offset, size)};
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  return {in_registers(registers, size)};
}

}  // namespace espy::kernel::aarch64
