// The System V calling convention (ABI, AMD64 supplement, 3.2.3), and that of rustc.
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

void classify(const types::Types& types, TypeId id, uint32_t offset_bytes, Classes& out);

// A bit field has the class of the words that its bits are in. A struct with an unaligned member is in memory.
void classify_member(const types::Types& types, const types::Member& member, uint32_t offset_bytes, Classes& out) {
  if (member.bit_size == 0) {
    const uint32_t align = types[member.type].align_bytes;
    if (align > 1 && member.offset_bytes() % align != 0) return merge(out[0], Class::kMemory);
    return classify(types, member.type, offset_bytes + member.offset_bytes(), out);
  }
  const uint32_t first = offset_bytes * 8 + member.offset_bits, last = first + member.bit_size - 1;
  for (uint32_t word = first / 64; word <= last / 64; ++word)
    word < out.size() ? merge(out[word], Class::kInteger) : merge(out[0], Class::kMemory);
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
      for (const types::Member& member : type.members) classify_member(types, member, offset_bytes, out);
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

// Whether a result is in the floating-point stack: long double, also as all of a struct. In arguments it is in memory.
bool is_x87(const types::Types& types, TypeId id) {
  const types::Type& type = types[id];
  if (type.kind == Kind::kArray) return type.count > 0 && is_x87(types, type.element);
  if (type.kind == Kind::kStruct && !type.members.empty())
    return std::ranges::all_of(type.members, [&](const types::Member& each) { return is_x87(types, each.type); });
  return is_float(type) && type.size_bytes > kWordBytes;
}

std::optional<ValueLocation> next_argument(const types::Types& types, const Arch& arch, Places& places,
                                           const PassedValue& value) {
  if (value.is_rust) return places.next_of_rust(types, value);
  const Classes classes = classes_of(types, value);
  if (value.is_by_reference) return places.by_address();
  if (classes == Classes{Class::kNone, Class::kNone}) return ValueLocation{{LocationPiece{}}};  // it is not passed
  const auto integers = static_cast<size_t>(std::ranges::count(classes, Class::kInteger));
  const auto vectors = static_cast<size_t>(std::ranges::count(classes, Class::kVector));
  const types::Type& type = types[value.type];
  const bool fits = integers <= places.integers_left() && vectors <= places.vectors_left();
  if (is_in_memory(classes) || !fits) return places.on_stack(type.size_bytes, type.align_bytes);
  const size_t first = places.integers;
  places.integers += integers;
  places.vectors += vectors;
  if (vectors == 0) return in_registers(arch.argument_offsets.subspan(first, integers), type.size_bytes);
  if (integers == 0) return std::nullopt;
  // One half is in a vector register.
  ValueLocation out = in_registers(arch.argument_offsets.subspan(first, integers), kWordBytes);
  const bool is_first = classes[0] == Class::kVector;
  const LocationPiece unreadable{.size_bytes = is_first ? kWordBytes : type.size_bytes - kWordBytes};
  if (is_first) out.pieces[0].size_bytes = type.size_bytes - kWordBytes;
  out.pieces.insert(is_first ? out.pieces.begin() : out.pieces.end(), unreadable);
  return out;
}

}  // namespace

std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue& result) {
  Places places(arch, kVectorRegisters);
  const bool is_in_memory_in_c =
      !result.is_rust && is_in_memory(classes_of(types, result)) && !is_x87(types, result.type);
  if (result.is_by_reference || is_in_memory_in_c) ++places.integers;
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(next_argument(types, arch, places, argument));
  return out;
}

ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  if (result.is_by_reference) return {at_register(arch.return_value_offset, 0)};
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  if (result.is_rust) return rust_result(types, result.type, registers);
  if (is_x87(types, result.type)) return {std::nullopt, "is in the floating-point stack, which probes cannot read"};
  const Classes classes = classes_of(types, result);
  if (is_in_memory(classes)) return {at_register(arch.return_value_offset, 0)};
  if (std::ranges::count(classes, Class::kVector) > 0) return {std::nullopt, kInVectorRegister};
  if (classes == Classes{Class::kNone, Class::kNone}) return {ValueLocation{{LocationPiece{}}}};
  return {in_registers(registers, types[result.type].size_bytes)};
}

}  // namespace espy::kernel::x86_64
