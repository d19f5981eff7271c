// Memory of the program itself: small objects on the stack, larger ones in per-CPU scratch; constants.
#include <algorithm>
#include <bit>
#include <utility>

#include "lower/lowering.h"

namespace espy::lower {
namespace {

constexpr uint32_t kStackObjectBytes = 64;  // larger objects go to scratch
constexpr uint32_t kStackTotalBytes = 224;  // of the 512 that a program and its callbacks share
constexpr uint32_t kInlineMoveBytes = 512;  // limit of the IR's `zero` and `copy`
constexpr uint32_t kScratchAlignBytes = 16;
constexpr uint32_t kRegionsOffsetBytes = 64;  // of the first region, after the mask of those that are taken

}  // namespace

bool Lowering::takes_stack(uint32_t size_bytes) {
  if (size_bytes > kStackObjectBytes || stack_bytes_ + size_bytes > kStackTotalBytes) return false;
  stack_bytes_ += size_bytes;
  return true;
}

ValueId Lowering::memory(uint32_t size_bytes, std::string_view name) {
  size_bytes = round_up(std::max(size_bytes, 1u), 8);
  if (takes_stack(size_bytes)) return ir().slot(ir().add_slot(size_bytes, 8, std::string(name)));
  return scratch_address(reserve_scratch(size_bytes));
}

ValueId Lowering::zeroed_memory(uint32_t size_bytes, std::string_view name) {
  const ValueId address = memory(size_bytes, name);
  zero(address, size_bytes);
  return address;
}

// An address of unknown origin is that of a whole object, which is aligned to 8.
uint32_t Lowering::alignment_of(ValueId address, int64_t offset_bytes) {
  const auto& values = functions_.function().values;
  int64_t total = offset_bytes;
  uint64_t steps = 8;  // the sizes of elements that are not the first
  for (;;) {
    const ir::Instruction& instruction = values[address];
    // The scratch base has no operands yet (init_scratch).
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

void Lowering::zero(ValueId address, uint32_t size_bytes) {
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

void Lowering::copy(ValueId destination, ValueId source, uint32_t size_bytes) {
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

void Lowering::copy_by_words(ValueId destination, ValueId source, uint32_t size_bytes, uint32_t align_bytes) {
  for (uint32_t at = 0; at < size_bytes;) {
    const uint32_t width = std::min(align_bytes, std::bit_floor(size_bytes - at));
    ir().store(static_cast<uint8_t>(width), destination, ir().load(static_cast<uint8_t>(width), source, at), at);
    at += width;
  }
}

void Lowering::copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes) {
  for (uint32_t at = 0; at < size_bytes; at += kInlineMoveBytes)
    copy(offset(destination, at), offset(source, at), std::min(kInlineMoveBytes, size_bytes - at));
}

// Strings are zero-padded, so the length is the number of bytes that are not zero. They are counted without branches:
// the verifier would explore each position of the end separately.
ValueId Lowering::copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes) {
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

ValueId Lowering::constant_bytes(std::string_view bytes) {
  return ir().map_value(module_.program.rodata, module_.add_constant(bytes));
}

Operand Lowering::load(ValueId address, TypeId type_id) {
  const types::Type& type = types()[type_id];
  if (types::is_by_reference(type)) return {type_id, address, true};
  if (type.kind == Kind::kVoid) return {type_id, ir().constant(0)};
  return {type_id, load_scalar(address, 0, static_cast<uint8_t>(type.size_bytes), type.is_signed)};
}

ValueId Lowering::load_scalar(ValueId address, int64_t offset_bytes, uint8_t size_bytes, bool is_signed) {
  const auto width = static_cast<uint8_t>(std::min<uint32_t>(alignment_of(address, offset_bytes), size_bytes));
  if (width == size_bytes) return ir().load(size_bytes, address, offset_bytes, is_signed);
  ValueId out = ir().load(width, address, offset_bytes);
  for (int64_t at = width; at < size_bytes; at += width) {
    const ValueId part = ir().binary(Op::k_shl, ir().load(width, address, offset_bytes + at), at * 8);
    out = ir().binary(Op::k_or, out, part);
  }
  return is_signed ? extend(out, size_bytes, true) : out;
}

// ---- The frame

ValueId Lowering::frame_address() {
  if (functions_.is_in_callback()) return frame_.callback_address;
  return ir().slot(frame_.slot);
}

uint32_t Lowering::add_to_frame(uint32_t size_bytes) {
  const uint32_t at = frame_.size_bytes;
  frame_.size_bytes += size_bytes;
  return at;
}

void Lowering::with_callback_memory(ValueId frame, ValueId scratch_base, const std::function<void()>& body) {
  frame_.has_callbacks = true;
  const ValueId outer_frame = std::exchange(frame_.callback_address, frame);
  const ValueId outer_base = std::exchange(scratch_.callback_base, scratch_base);
  body();
  frame_.callback_address = outer_frame;
  scratch_.callback_base = outer_base;
}

void Lowering::init_frame(ValueId scratch_base) {
  if (frame_.size_bytes == kFrameHeaderBytes && !frame_.has_callbacks) return;
  functions_.function().slots[frame_.slot].size_bytes = frame_.size_bytes;
  const ValueId frame = ir().slot(frame_.slot);
  ir().zero(frame, frame_.size_bytes);
  ir().store(8, frame, scratch_base, kFrameScratchOffset);
  ir().store(8, frame, ir().context(), kFrameContextOffset);
  if (main_.found_index.valid()) ir().store(8, frame, main_.found_index, kFrameProbeOffset);
}

// ---- Scratch memory
//
// Per-CPU memory, in the map `scratch`: for objects that are too large for the stack.
//
// Where a program may be preempted, two threads can run it on one CPU at a time. Each then takes one of a few regions
// of its CPU by an atomic operation on a bit mask, and releases it at the end.

ValueId Lowering::scratch_base() {
  ++scratch_.use_count;
  return functions_.is_in_callback() ? scratch_.callback_base : scratch_.main_base;
}

uint32_t Lowering::reserve_scratch(uint32_t size_bytes) {
  const auto at = round_up(scratch_.size_bytes, kScratchAlignBytes);
  scratch_.size_bytes = at + size_bytes;
  return at;
}

ValueId Lowering::scratch_address(uint32_t offset_bytes) { return offset(scratch_base(), offset_bytes); }

ValueId Lowering::scratch_region_number() {
  ++scratch_.use_count;  // it is known after the setup
  if (!scratch_.number_slot.valid()) scratch_.number_slot = new_slot("scratch_region");
  return read_slot(scratch_.number_slot);
}

uint32_t Lowering::scratch_region_bytes() const { return std::bit_ceil(std::max(scratch_.size_bytes, 64u)); }

Lowering::CpuMemory Lowering::add_cpu_memory(uint32_t size_bytes) {
  const CpuMemory out{round_up(module_.scratch_bytes, 64), std::bit_ceil(size_bytes)};
  module_.scratch_bytes = out.at + out.stride_bytes * module_.cpu_slots();
  return out;
}

ValueId Lowering::cpu_memory_address(const CpuMemory& memory) {
  const ValueId distance = ir().binary(Op::k_shl, cpu_slot(cpu()), std::countr_zero(memory.stride_bytes));
  return ir().binary(Op::k_add, ir().map_value(module_.scratch_map(), memory.at), distance);
}

ValueId Lowering::cpu_memory(const std::string& name, uint32_t size_bytes) {
  const auto [known, is_new] = scratch_.cpu_memories.try_emplace(name);
  if (is_new) known->second = add_cpu_memory(size_bytes);
  return cpu_memory_address(known->second);
}

ValueId Lowering::init_scratch(uint32_t region_count, const std::function<void()>& if_none_is_free) {
  ir::Function& main = functions_.function();
  if (scratch_.number_slot.valid()) write_slot(scratch_.number_slot, ir().constant(0));
  if (scratch_.size_bytes == 0) {
    main.values[scratch_.main_base] = {.op = Op::k_konst};
  } else if (context_.is_preemptible && kernel().has(kernel::Feature::kAtomicFetch)) {  // see program/layout.h
    const ValueId of_cpu =
        cpu_memory_address(add_cpu_memory(scratch_region_bytes() * region_count + kRegionsOffsetBytes));
    const ValueId region = take_scratch_region(of_cpu, region_count, if_none_is_free);
    main.values[scratch_.main_base].operands = {region, ir().constant(kRegionsOffsetBytes)};
  } else {
    const ValueId of_cpu = cpu_memory_address(add_cpu_memory(scratch_region_bytes()));
    main.values[scratch_.main_base].operands = {of_cpu, ir().constant(0)};
  }
  main.blocks[ir().block()].instructions.push_back(scratch_.main_base);
  return scratch_.main_base;
}

ValueId Lowering::take_scratch_region(ValueId of_cpu, uint32_t region_count,
                                      const std::function<void()>& if_none_is_free) {
  scratch_.cpu_slot = new_slot("scratch_cpu");
  if (!scratch_.number_slot.valid()) scratch_.number_slot = new_slot("scratch_region");
  const BlockId got = ir().add_block("scratch");
  const ValueId index = ir().add_block_parameter(got);
  for (uint32_t i = 0; i < region_count; ++i) {
    const ValueId old = ir().atomic(Op::k_atomic_fetch_or, 8, of_cpu, {ir().constant(int64_t{1} << i)});
    const ValueId number = ir().constant(i);
    const BlockId take = ir().add_block();
    const BlockId next = ir().add_block();
    ir().branch(Condition::test, old, int64_t{1} << i, next, take);
    ir().enter(take);
    ir().jump(got, {number});
    ir().enter(next);
  }
  if_none_is_free();
  ir().enter(got);
  write_slot(scratch_.cpu_slot, of_cpu);
  write_slot(scratch_.number_slot, index);
  const ValueId distance = ir().binary(Op::k_shl, index, std::countr_zero(scratch_region_bytes()));
  return ir().binary(Op::k_add, of_cpu, distance);
}

void Lowering::release_scratch() {
  if (!scratch_.cpu_slot.valid()) return;
  const ValueId bit = ir().binary(Op::k_shl, ir().constant(1), read_slot(scratch_.number_slot));
  const ValueId mask = ir().unary(Op::k_not, bit);
  ir().atomic(Op::k_atomic_fetch_and, 8, read_slot(scratch_.cpu_slot), {mask});
}

}  // namespace espy::lower
