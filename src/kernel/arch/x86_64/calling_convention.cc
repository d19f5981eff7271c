// The System V calling convention (ABI, AMD64 supplement, 3.2.3), and that of rustc for pairs of numbers.
#include <algorithm>
#include <array>

#include "kernel/arch/locations.h"
#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {

namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kVectorRegisters = 8;

enum class Class : uint8_t { kNone, kInteger, kVector, kMemory };

// The class of each eightbyte of a value of at most 16 bytes; kMemory in the first for larger values.
using Classes = std::array<Class, 2>;

void merge(Class& into, Class with) {
  if (into == with || with == Class::kNone) return;
  into = into == Class::kNone                               ? with
         : into == Class::kMemory || with == Class::kMemory ? Class::kMemory
                                                            : Class::kInteger;
}

void classify(const types::Types& types, TypeId id, uint32_t offset_bytes, Classes& out) {
  const types::Type& type = types[id];
  if (offset_bytes + type.size_bytes > 2 * kWordBytes) return merge(out[0], Class::kMemory);
  if (is_float(type)) {
    // `long double` has class X87, which is passed in memory.
    if (type.size_bytes > kWordBytes) return merge(out[0], Class::kMemory);
    return merge(out[offset_bytes / kWordBytes], Class::kVector);
  }
  switch (type.kind) {
    case Kind::kVoid:
    case Kind::kFunction: return;
    case Kind::kStruct:
      if (!type.complete) return merge(out[0], Class::kMemory);
      for (const types::Member& member : type.members)
        classify(types, member.type, offset_bytes + member.offset_bytes(), out);
      return;
    case Kind::kArray:
      for (uint32_t i = 0; i < type.count; ++i)
        classify(types, type.element, offset_bytes + i * types[type.element].size_bytes, out);
      return;
    default:
      for (uint32_t at = offset_bytes; at < offset_bytes + std::max(type.size_bytes, 1u); at += kWordBytes)
        merge(out[at / kWordBytes], Class::kInteger);
  }
}

Classes classes_of(const types::Types& types, const PassedValue& value) {
  Classes out = {Class::kNone, Class::kNone};
  if (value.is_by_reference)
    out[0] = Class::kInteger;
  else
    classify(types, value.type, 0, out);
  return out;
}

bool is_in_memory(const Classes& classes) { return classes[0] == Class::kMemory || classes[1] == Class::kMemory; }

class ArgumentAssigner {
 public:
  ArgumentAssigner(const types::Types& types, const Arch& arch) : types_(types), arch_(arch) {
    stack_at_ = arch.stack_argument_start_bytes;
  }

  void skip_result_address() { ++integers_; }

  std::optional<ValueLocation> next(const PassedValue& value) {
    const Classes classes = classes_of(types_, value);
    const auto pair = scalar_pair(types_, value);
    if (pair && std::ranges::count(classes, Class::kVector) == 0 && integers_ + 2 <= arch_.argument_offsets.size()) {
      integers_ += 2;
      return in_register_pair(*pair, arch_.argument_offsets[integers_ - 2], arch_.argument_offsets[integers_ - 1],
                              types_[value.type].size_bytes);
    }
    if (classes == Classes{Class::kNone, Class::kNone})
      return ValueLocation{{LocationPiece{}}};  // an empty class is not passed
    const auto integers = static_cast<size_t>(std::ranges::count(classes, Class::kInteger));
    const auto vectors = static_cast<size_t>(std::ranges::count(classes, Class::kVector));
    const bool fits = integers_ + integers <= arch_.argument_offsets.size() && vectors_ + vectors <= kVectorRegisters;
    if (is_in_memory(classes) || !fits) return on_stack(value);
    const size_t first = integers_;
    integers_ += integers;
    vectors_ += vectors;
    if (vectors > 0) return std::nullopt;
    if (value.is_by_reference) return at_register(arch_.argument_offsets[first], 0);
    return in_registers(arch_.argument_offsets.subspan(first, integers), types_[value.type].size_bytes);
  }

 private:
  ValueLocation on_stack(const PassedValue& value) {
    const types::Type& type = types_[value.type];
    const uint32_t size = value.is_by_reference ? kWordBytes : type.size_bytes;
    if (type.align_bytes > kWordBytes) stack_at_ = (stack_at_ - kWordBytes + 15) / 16 * 16 + kWordBytes;
    ValueLocation out = at_register(arch_.stack_pointer_offset, stack_at_);
    if (value.is_by_reference) out.pieces[0].steps.push_back({Op::kRead, kWordBytes});
    stack_at_ += (size + kWordBytes - 1) / kWordBytes * kWordBytes;
    return out;
  }

  const types::Types& types_;
  const Arch& arch_;
  size_t integers_ = 0;
  size_t vectors_ = 0;
  uint32_t stack_at_ = 0;
};

}  // namespace

std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue& result) {
  ArgumentAssigner places(types, arch);
  if (result.is_by_reference || is_in_memory(classes_of(types, result))) places.skip_result_address();
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(places.next(argument));
  return out;
}

ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  const Classes classes = classes_of(types, result);
  const types::Type& type = types[result.type];
  if (is_float(type)) return {std::nullopt, kInVectorRegister};
  if (result.is_by_reference || is_in_memory(classes)) return {at_register(arch.return_value_offset, 0)};
  if (std::ranges::count(classes, Class::kVector) > 0) return {std::nullopt, kInVectorRegister};
  if (classes[0] == Class::kNone) return {ValueLocation{{LocationPiece{}}}};
  if (const auto pair = scalar_pair(types, result))
    return {in_register_pair(*pair, arch.return_value_offset, arch.second_return_value_offset, type.size_bytes)};
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  return {in_registers(registers, type.size_bytes)};
}

}  // namespace espy::kernel::x86_64
