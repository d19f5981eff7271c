#include "lower/memory.h"

#include <algorithm>
#include <bit>

namespace espy::lower {
namespace {

constexpr uint32_t kStackObjectBytes = 64;  // larger objects go to scratch
constexpr uint32_t kStackTotalBytes = 224;  // of the 512 that a program and its callbacks share
constexpr uint32_t kInlineMoveBytes = 512;  // limit of the IR's `zero` and `copy`

}  // namespace

bool Memory::takes_stack(uint32_t size_bytes) {
  if (size_bytes > kStackObjectBytes || stack_bytes_ + size_bytes > kStackTotalBytes) return false;
  stack_bytes_ += size_bytes;
  return true;
}

ValueId Memory::allocate(uint32_t size_bytes, std::string_view name) {
  size_bytes = static_cast<uint32_t>(round_up(std::max(size_bytes, 1u), 8));
  if (takes_stack(size_bytes)) return ir().slot(ir().add_slot(size_bytes, 8, std::string(name)));
  return scratch_.address(scratch_.reserve(size_bytes));
}

// An address of unknown origin is that of a whole object, which is aligned to 8.
uint32_t Memory::alignment_of(ValueId address, int64_t offset_bytes) {
  const auto& values = functions_.function().values;
  int64_t total = offset_bytes;
  uint64_t steps = 8;  // the sizes of elements that are not the first
  for (;;) {
    const ir::Instruction& instruction = values[address];
    // The scratch base has no operands yet (Scratch::write_setup).
    if (instruction.op != Op::k_add || instruction.operands.empty()) break;
    const ir::Instruction& right = values[instruction.operands[1]];
    if (right.op == Op::k_konst) {
      total += right.imm;
    } else if (right.op == Op::k_mul && values[right.operands[1]].op == Op::k_konst) {
      steps |= static_cast<uint64_t>(values[right.operands[1]].imm);
    } else {
      break;
    }
    address = instruction.operands[0];
  }
  return uint32_t{1} << std::countr_zero(static_cast<uint64_t>(total) | steps);
}

void Memory::zero(ValueId address, uint32_t size_bytes) {
  if (size_bytes > kInlineMoveBytes) {
    // The helper zeroes the destination if the read fails, and no process has memory at the last address.
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

void Memory::copy(ValueId destination, ValueId source, uint32_t size_bytes) {
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
  copy_by_words(destination, source, size_bytes, align);
}

void Memory::copy_by_words(ValueId destination, ValueId source, uint32_t size_bytes, uint32_t align_bytes) {
  for (uint32_t at = 0; at < size_bytes;) {
    const uint32_t width = std::min(align_bytes, std::bit_floor(size_bytes - at));
    ir().store(static_cast<uint8_t>(width), destination, ir().load(static_cast<uint8_t>(width), source, at), at);
    at += width;
  }
}

void Memory::copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes) {
  for (uint32_t at = 0; at < size_bytes; at += kInlineMoveBytes)
    copy(offset(destination, at), offset(source, at), std::min(kInlineMoveBytes, size_bytes - at));
}

// Strings are zero-padded, so the length is the number of bytes that are not zero. They are counted without branches:
// the verifier would explore each position of the end separately.
ValueId Memory::copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes) {
  constexpr int64_t kLowBits = 0x7f7f7f7f7f7f7f7f, kOnes = 0x0101010101010101;
  // A string this small may be a tuple's member on the stack, at any alignment.
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
    const ValueId ones = ir().binary(Op::k_mul, ir().binary(Op::k_shr, tops, 7), kOnes);  // the sum is the top byte
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

ValueId Memory::constant_bytes(std::string_view bytes) {
  return ir().map_value(module_.program.rodata, module_.add_constant(bytes));
}

Operand Memory::load(ValueId address, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (types::is_by_reference(type)) return {type_id, address, true};
  if (type.kind == Kind::kVoid) return {type_id, ir().constant(0)};
  return {type_id, load_scalar(address, 0, static_cast<uint8_t>(type.size_bytes), type.is_signed)};
}

ValueId Memory::load_scalar(ValueId address, int64_t offset_bytes, uint8_t size_bytes, bool is_signed) {
  const auto width = static_cast<uint8_t>(std::min<uint32_t>(alignment_of(address, offset_bytes), size_bytes));
  if (width == size_bytes) return ir().load(size_bytes, address, offset_bytes, is_signed);
  ValueId out = ir().load(width, address, offset_bytes);
  for (int64_t at = width; at < size_bytes; at += width) {
    const ValueId part = ir().binary(Op::k_shl, ir().load(width, address, offset_bytes + at), at * 8);
    out = ir().binary(Op::k_or, out, part);
  }
  return is_signed ? extend(out, size_bytes, true) : out;
}

}  // namespace espy::lower
