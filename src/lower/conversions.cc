#include "lower/conversions.h"

#include <algorithm>
#include <bit>

namespace espy::lower {

Operand Conversions::in_our_memory(Operand operand) {
  if (!operand.is_address || operand.space == AddressSpace::kBpf) return operand;
  const types::Type type = types()[operand.type];
  const ValueId address = memory_.allocate(type.size_bytes, {});
  Operand out{operand.type, address, true};
  if (type.kind == Kind::kString) {
    out.length = reads_.read_text(address, operand.type, operand.value, operand.space, true);
  } else {
    reads_.read(address, type.size_bytes, operand.value, operand.space);
    zero_padding(address, operand.type);
  }
  return out;
}

Operand Conversions::aligned(Operand operand) {
  operand = in_our_memory(operand);
  if (!operand.is_address || memory_.alignment_of(operand.value) == 8) return operand;
  const uint32_t size = types()[operand.type].size_bytes;
  const ValueId copy = memory_.allocate(size, "aligned");
  memory_.copy(copy, operand.value, size);
  operand.value = copy;
  return operand;
}

void Conversions::store_scalar(ValueId address, ValueId value, uint32_t size_bytes) {
  CHECK(std::has_single_bit(size_bytes) && size_bytes <= 8);
  if (memory_.alignment_of(address) >= size_bytes) return ir().store(static_cast<uint8_t>(size_bytes), address, value);
  const uint32_t width = memory_.alignment_of(address);
  for (uint32_t at = 0; at < size_bytes; at += width)
    ir().store(static_cast<uint8_t>(width), address, at ? ir().binary(Op::k_shr, value, at * 8) : value, at);
}

// Marks the bits of a type that hold its value, in a mask for each byte.
void Conversions::mark_used(TypeId id, uint32_t at_bits, std::vector<uint8_t>& used) {
  const types::Type type = types()[module_.complete(id)];
  const auto mark = [&](uint32_t begin, uint32_t bits) {
    for (uint32_t bit = begin; bit < begin + bits && bit / 8 < used.size(); ++bit)
      used[bit / 8] = static_cast<uint8_t>(used[bit / 8] | 1u << bit % 8);
  };
  if (type.kind == Kind::kArray) {
    const uint32_t element_bits = types()[module_.complete(type.element)].size_bytes * 8;
    for (uint32_t i = 0; i < type.count && at_bits / 8 < used.size() && element_bits > 0; ++i)
      mark_used(type.element, at_bits + i * element_bits, used);
  } else if (type.kind == Kind::kStruct && type.complete && !type.members.empty()) {
    for (const types::Member& member : type.members) {
      if (member.bit_size > 0)
        mark(at_bits + member.offset_bits, member.bit_size);
      else
        mark_used(member.type, at_bits + member.offset_bits, used);
    }
  } else {
    mark(at_bits, type.size_bytes * 8);
  }
}

// Zeros the bytes and bits between the members of a struct of C that was read. They have no value (C17 6.2.6.1), but
// keys are compared by their bytes. Longer gaps are left: debug information may not tell what is there.
void Conversions::zero_padding(ValueId address, TypeId id) {
  constexpr uint32_t kMostBytes = 512, kMostGap = 7;
  const types::Type type = types()[module_.complete(id)];
  const bool is_struct = type.kind == Kind::kStruct;
  const bool has_structs = type.kind == Kind::kArray && types()[type.element].kind == Kind::kStruct;
  if ((!is_struct && !has_structs) || type.size_bytes > kMostBytes) return;
  std::vector<uint8_t> used(type.size_bytes);
  mark_used(id, 0, used);
  for (uint32_t at = 0; at < used.size();) {
    uint32_t gap = 0;
    while (at + gap < used.size() && used[at + gap] == 0) ++gap;
    for (uint32_t i = 0; i < gap && gap <= kMostGap; ++i) ir().store(1, address, ir().constant(0), at + i);
    at += gap;
    if (gap > 0) continue;
    if (used[at] != UINT8_MAX) ir().store(1, address, ir().binary(Op::k_and, ir().load(1, address, at), used[at]), at);
    ++at;
  }
}

void Conversions::store(ValueId address, Operand operand) {
  const types::Type type = types()[operand.type];
  if (type.size_bytes == 0) return;
  if (!operand.is_address) {
    store_scalar(address, operand.value, type.size_bytes);
  } else if (operand.space == AddressSpace::kBpf) {
    memory_.copy(address, operand.value, type.size_bytes);
  } else if (type.kind == Kind::kString) {
    reads_.read_text(address, operand.type, operand.value, operand.space, true);
  } else {
    reads_.read(address, type.size_bytes, operand.value, operand.space);
    zero_padding(address, operand.type);
  }
}

// Strings are zero-padded: a larger capacity needs more zeros, a smaller one a NUL.
void Conversions::copy_string(ValueId destination, Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const uint32_t capacity = types()[to].count;
  const bool fits =
      from.count < capacity || (from.count == capacity && (!from.may_lack_nul || types()[to].may_lack_nul));
  if (fits && from.count < capacity) memory_.zero(destination, capacity);
  if (operand.space != AddressSpace::kBpf && fits && from.may_lack_nul) {
    reads_.read_text(destination, operand.type, operand.value, operand.space, from.count == capacity);
  } else if (operand.space != AddressSpace::kBpf) {
    reads_.read_string(destination, capacity, operand.value, operand.space, true);
  } else if (fits) {
    memory_.copy(destination, operand.value, from.count);
  } else {
    memory_.copy(destination, operand.value, capacity);
    ir().store(1, destination, ir().constant(0), capacity - 1);
  }
}

const types::Member& Conversions::counterpart(const types::Type& of, const types::Type& from, size_t member) {
  if (of.kind == Kind::kRecord && from.kind == Kind::kRecord) {
    const auto same = std::ranges::find(from.members, of.members[member].name, &types::Member::name);
    if (same != from.members.end()) return *same;
  }
  return from.members[member];
}

// Member by member.
void Conversions::store_members(ValueId address, Operand operand, TypeId to) {
  const types::Type source = types()[operand.type];
  const types::Type target = types()[to];
  memory_.zero(address, target.size_bytes);
  operand = in_our_memory(operand);
  for (size_t i = 0; i < target.members.size(); ++i) {
    const types::Member& given = counterpart(target, source, i);
    const Operand part = memory_.load(offset(operand.value, given.offset_bytes()), given.type);
    store_converted(offset(address, target.members[i].offset_bytes()), part, target.members[i].type);
  }
}

// Tuples and records, but not structs of C.
bool Conversions::is_by_member(TypeId from, TypeId to) const {
  const types::Type& target = types()[to];
  return types::is_struct_like(target) && types::is_struct_like(types()[from]) && target.kind != Kind::kStruct;
}

bool Conversions::are_strings(TypeId from, TypeId to) const {
  return types()[from].kind == Kind::kString && types()[to].kind == Kind::kString;
}

void Conversions::store_converted(ValueId address, Operand operand, TypeId to) {
  if (operand.type != to && operand.is_address && are_strings(operand.type, to))
    return copy_string(address, operand, to);
  if (operand.type != to && operand.is_address && is_by_member(operand.type, to))
    return store_members(address, operand, to);
  store(address, convert(operand, to));
}

// The operand's bytes in a copy that is as large as the type `to`, the rest zeros.
Operand Conversions::padded_copy(Operand operand, TypeId to) {
  const uint32_t size = types()[to].size_bytes;
  const uint32_t given = types()[operand.type].size_bytes;
  const ValueId address = memory_.allocate(std::max(size, given), {});
  if (size > given) memory_.zero(address, size);
  store(address, operand);
  return {to, address, true};
}

Operand Conversions::convert_scalar(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  // The bytes of a number are those of 64 bits, with its sign.
  if (types::is_by_reference(target)) return padded_copy({types().int_type(8, from.is_signed), operand.value}, to);
  if (target.kind != Kind::kBool) return {to, normalize(operand.value, to)};
  return {to, from.kind == Kind::kBool ? operand.value : ir().binary(Op::k_ne, operand.value, ir().constant(0))};
}

// Bytes as an integer, or an array as a pointer.
Operand Conversions::bytes_as_scalar(Operand operand, TypeId to) {
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  if (target.kind == Kind::kPointer) return {to, operand.value};
  const ValueId bytes = in_our_memory(operand).value;
  const uint32_t size = std::min(from.size_bytes, target.size_bytes);
  if (std::has_single_bit(size))
    return {to, normalize(memory_.load_scalar(bytes, 0, static_cast<uint8_t>(size), false), to)};
  const ValueId number = memory_.allocate(8, "number");
  ir().store(8, number, ir().constant(0));
  memory_.copy(number, bytes, size);
  return {to, normalize(ir().load(8, number), to)};
}

Operand Conversions::convert(Operand operand, TypeId to) {
  if (operand.type == to || !to.valid() || !operand.type.valid()) return operand;
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  if (target.kind == Kind::kVoid) return operand;
  if (types::is_aggregation(from) && !types::is_by_reference(target)) return reduce(operand, to);
  if (!operand.is_address) return convert_scalar(operand, to);
  if (!types::is_by_reference(target)) return bytes_as_scalar(operand, to);
  if (are_strings(operand.type, to) || is_by_member(operand.type, to)) {
    const ValueId address = memory_.allocate(target.size_bytes, {});
    store_converted(address, operand, to);
    return {to, address, true};
  }
  if (from.size_bytes < target.size_bytes) return padded_copy(operand, to);
  operand.type = to;
  return operand;
}

Operand Conversions::reduce(Operand aggregate, TypeId to) {
  const types::Type type = types()[aggregate.type];
  const ValueId first = ir().load(8, aggregate.value);
  if (type.kind == Kind::kAvg || type.kind == Kind::kStats) {
    const ValueId count = ir().load(8, aggregate.value, 8);
    return {to, ir().binary(type.is_signed ? Op::k_sdiv : Op::k_udiv, first, count)};
  }
  return {to, normalize(first, to)};
}

ValueId Conversions::normalize(ValueId value, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (type.kind == Kind::kBool) return ir().binary(Op::k_ne, value, ir().constant(0));
  if (!types::is_integer(type) && type.kind != Kind::kUsername) return value;
  return extend(value, static_cast<uint8_t>(type.size_bytes), type.is_signed);
}

}  // namespace espy::lower
