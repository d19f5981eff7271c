// Memory of our own: a little on the stack, the rest in per-CPU scratch; moving bytes about in it.
#include <algorithm>
#include <bit>

#include "lower/unit.h"

namespace espy::lower {
namespace {

constexpr uint32_t kStackObjectBytes = 64;  // larger ones go to scratch
constexpr uint32_t kStackTotalBytes = 224;  // of the 512 that a program and its callbacks have together
constexpr uint32_t kInlineMoveBytes = 512;  // what one `zero` or `copy` of the IR takes
constexpr uint32_t kScratchAlignBytes = 16;

}  // namespace

ValueId UnitLowering::memory(uint32_t size_bytes, std::string_view name) {
  size_bytes = static_cast<uint32_t>(round_up(std::max(size_bytes, 1u), 8));
  if (size_bytes <= kStackObjectBytes && stack_bytes_ + size_bytes <= kStackTotalBytes) {
    stack_bytes_ += size_bytes;
    return ir().slot(ir().add_slot(size_bytes, 8, std::string(name)));
  }
  return scratch(size_bytes);
}

ValueId UnitLowering::scratch(uint32_t size_bytes) {
  const auto at = static_cast<uint32_t>(round_up(scratch_bytes_, kScratchAlignBytes));
  scratch_bytes_ = at + size_bytes;
  return offset(scratch_base(), at);
}

ValueId UnitLowering::scratch_base() {
  if (is_guarding_) has_setup_before_guard_ = true;
  if (is_in_callback()) return callback_scratch_;
  return scratch_base_;
}

ValueId UnitLowering::offset(ValueId address, int64_t offset_bytes) {
  return offset_bytes == 0 ? address : ir().binary(Op::k_add, address, offset_bytes);
}

// The stack must be accessed aligned; nothing else need be. Addresses that we do not see the origin of are those of
// whole objects, which are aligned.
uint32_t UnitLowering::alignment_of(ValueId address) {
  int64_t total = 0;
  for (;;) {
    const ir::Instruction& instruction = function().values[address];
    if (instruction.op != Op::k_add || instruction.operands.empty()) break;  // the scratch base is placed last
    const ir::Instruction& right = function().values[instruction.operands[1]];
    if (right.op != Op::k_konst) break;
    total += right.imm;
    address = instruction.operands[0];
  }
  return total == 0 ? 8
                    : static_cast<uint32_t>(std::min<uint64_t>(8, uint64_t{1} << std::countr_zero(uint64_t(total))));
}

void UnitLowering::zero(ValueId address, uint32_t size_bytes) {
  if (size_bytes > kInlineMoveBytes) {
    // No process has memory at the last address, and the helper zeroes what it cannot read.
    ir().call(Helper::probe_read_user, {address, ir().constant(size_bytes), ir().constant(-1)});
    return;
  }
  const uint32_t align = alignment_of(address);
  const uint32_t whole = align == 8 ? size_bytes & ~7u : 0;
  if (whole) ir().zero(address, whole);
  for (uint32_t at = whole; at < size_bytes;) {
    uint32_t width = std::min(align, std::bit_floor(size_bytes - at));
    while (at % width) width /= 2;
    ir().store(static_cast<uint8_t>(width), address, ir().constant(0), at);
    at += width;
  }
}

void UnitLowering::copy(ValueId destination, ValueId source, uint32_t size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > kInlineMoveBytes) {
    if (!may_copy_from_kernel()) return copy_in_pieces(destination, source, size_bytes);
    ir().call(Helper::probe_read_kernel, {destination, ir().constant(size_bytes), source});
    return;
  }
  const uint32_t align = std::min(alignment_of(destination), alignment_of(source));
  if (align == 8) return ir().copy(destination, source, size_bytes);
  if (size_bytes > 64 && may_copy_from_kernel()) {
    ir().call(Helper::probe_read_kernel, {destination, ir().constant(size_bytes), source});
    return;
  }
  for (uint32_t at = 0; at < size_bytes;) {
    const uint32_t width = std::min(align, std::bit_floor(size_bytes - at));
    ir().store(static_cast<uint8_t>(width), destination, ir().load(static_cast<uint8_t>(width), source, at), at);
    at += width;
  }
}

void UnitLowering::copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes) {
  for (uint32_t at = 0; at < size_bytes; at += kInlineMoveBytes)
    copy(offset(destination, at), offset(source, at), std::min(kInlineMoveBytes, size_bytes - at));
}

// Texts have zeros behind their end, so their length is the number of bytes that are none. Without branches: else the
// verifier would walk on from each end there may be.
ValueId UnitLowering::copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes) {
  constexpr int64_t kLowBits = 0x7f7f7f7f7f7f7f7f, kOnes = 0x0101010101010101;
  // What is so small may lie on the stack, at any place behind another text.
  if (capacity_bytes > kStackObjectBytes)
    copy(destination, source, capacity_bytes);
  else
    for (uint32_t at = 0; at < capacity_bytes; ++at) ir().store(1, destination, ir().load(1, source, at), at);
  const ir::SlotId length = new_slot("length");
  write_slot(length, ir().constant(0));
  const auto count_in = [&](ValueId address, uint8_t width) {
    const ValueId word = ir().load(width, address);
    const ValueId carried = ir().binary(Op::k_add, ir().binary(Op::k_and, word, kLowBits), kLowBits);
    const ValueId tops = ir().binary(Op::k_and, ir().binary(Op::k_or, carried, word), ~kLowBits);
    const ValueId ones = ir().binary(Op::k_mul, ir().binary(Op::k_shr, tops, 7), kOnes);  // summed in its top byte
    write_slot(length, ir().binary(Op::k_add, read_slot(length), ir().binary(Op::k_shr, ones, 56)));
  };
  const uint8_t width = alignment_of(source) == 8 ? 8 : 1;
  if (capacity_bytes >= width)
    ir().count_up(capacity_bytes / width, [&](ValueId i, BlockId) {
      count_in(ir().binary(Op::k_add, source, ir().binary(Op::k_mul, i, width)), width);
    });
  for (uint32_t at = capacity_bytes / width * width; at < capacity_bytes; ++at) count_in(offset(source, at), 1);
  return read_slot(length);
}

ValueId UnitLowering::constant_bytes(std::string_view bytes) {
  return ir().map_value(module_.program.rodata, module_.add_constant(bytes));
}

Operand UnitLowering::in_our_memory(Operand operand) {
  if (!operand.is_address || operand.space == AddressSpace::kBpf) return operand;
  const types::Type type = types()[operand.type];
  const ValueId address = memory(type.size_bytes, {});
  Operand out{operand.type, address, true};
  if (type.kind == Kind::kString) {
    out.length = read_string(address, type.count, operand.value, operand.space, true);
  } else {
    read(address, type.size_bytes, operand.value, operand.space);
  }
  return out;
}

void UnitLowering::store(ValueId address, Operand operand) {
  const types::Type type = types()[operand.type];
  if (type.size_bytes == 0) return;
  if (!operand.is_address) {
    CHECK(std::has_single_bit(type.size_bytes) && type.size_bytes <= 8);
    ValueId value = operand.value;
    if (alignment_of(address) >= type.size_bytes) {
      ir().store(static_cast<uint8_t>(type.size_bytes), address, value);
    } else {
      const uint32_t width = alignment_of(address);
      for (uint32_t at = 0; at < type.size_bytes; at += width) {
        ir().store(static_cast<uint8_t>(width), address, at ? ir().binary(Op::k_shr, value, at * 8) : value, at);
      }
    }
  } else if (operand.space == AddressSpace::kBpf) {
    copy(address, operand.value, type.size_bytes);
  } else if (type.kind == Kind::kString) {
    read_string(address, type.count, operand.value, operand.space, true);
  } else {
    read(address, type.size_bytes, operand.value, operand.space);
  }
}

Operand UnitLowering::load(ValueId address, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (types::is_by_reference(type)) return {type_id, address, true};
  if (type.kind == Kind::kVoid) return {type_id, ir().constant(0)};
  return {type_id, ir().load(static_cast<uint8_t>(type.size_bytes), address, 0, type.is_signed)};
}

// Strings keep zeros behind their end, so a longer capacity needs more zeros and a shorter one a NUL.
void UnitLowering::copy_string(ValueId destination, Operand operand, uint32_t capacity_bytes) {
  const uint32_t from = types()[operand.type].count;
  if (operand.space != AddressSpace::kBpf) {
    read_string(destination, capacity_bytes, operand.value, operand.space, true);
  } else if (from <= capacity_bytes) {
    if (from < capacity_bytes) zero(destination, capacity_bytes);
    copy(destination, operand.value, from);
  } else {
    copy(destination, operand.value, capacity_bytes);
    ir().store(1, destination, ir().constant(0), capacity_bytes - 1);
  }
}

void UnitLowering::store_converted(ValueId address, Operand operand, TypeId to) {
  const types::Type target = types()[to];
  if (operand.type != to && operand.is_address && target.kind == Kind::kString &&
      types()[operand.type].kind == Kind::kString) {
    return copy_string(address, operand, target.count);
  }
  if (operand.type != to && operand.is_address && types::is_struct_like(target) &&
      types::is_struct_like(types()[operand.type]) && target.kind != Kind::kStruct) {
    const types::Type source = types()[operand.type];
    zero(address, target.size_bytes);
    operand = in_our_memory(operand);
    for (size_t i = 0; i < target.members.size(); ++i) {
      const Operand part = load(offset(operand.value, source.members[i].offset_bytes()), source.members[i].type);
      store_converted(offset(address, target.members[i].offset_bytes()), part, target.members[i].type);
    }
    return;
  }
  store(address, convert(operand, to));
}

Operand UnitLowering::convert_members(Operand operand, TypeId to) {
  const ValueId address = memory(types()[to].size_bytes, {});
  store_converted(address, operand, to);
  return {to, address, true};
}

Operand UnitLowering::convert(Operand operand, TypeId to) {
  if (operand.type == to || !to.valid() || !operand.type.valid()) return operand;
  const types::Type from = types()[operand.type];
  const types::Type target = types()[to];
  if (target.kind == Kind::kVoid) return operand;
  if (types::is_aggregation(from) && !types::is_by_reference(target)) return reduce(operand, to);
  if (!operand.is_address) {
    if (!types::is_by_reference(target)) {
      if (target.kind == Kind::kBool)
        return {to, from.kind == Kind::kBool ? operand.value : ir().binary(Op::k_ne, operand.value, ir().constant(0))};
      return {to, normalise(operand.value, to)};
    }
    const ValueId address = memory(target.size_bytes, {});  // an integer as bytes
    if (target.size_bytes > from.size_bytes) zero(address, target.size_bytes);
    store(address, operand);
    return {to, address, true};
  }
  if (!types::is_by_reference(target)) {  // bytes as an integer, an array as a pointer
    if (target.kind == Kind::kPointer) return {to, operand.value};
    operand = in_our_memory(operand);
    const auto width = static_cast<uint8_t>(std::bit_floor(std::min(from.size_bytes, target.size_bytes)));
    return {to, ir().load(width, operand.value, 0, target.is_signed)};
  }
  const bool are_strings = from.kind == Kind::kString && target.kind == Kind::kString;
  const bool are_tuples = types::is_struct_like(from) && types::is_struct_like(target) && target.kind != Kind::kStruct;
  if (are_strings || are_tuples) return convert_members(operand, to);
  if (from.size_bytes < target.size_bytes) {
    const ValueId address = memory(target.size_bytes, {});
    zero(address, target.size_bytes);
    store(address, operand);
    return {to, address, true};
  }
  operand.type = to;
  return operand;
}

}  // namespace espy::lower
