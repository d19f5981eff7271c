#include "lower/scratch.h"

#include <algorithm>
#include <bit>

namespace espy::lower {
namespace {

constexpr uint32_t kAlignBytes = 16;
constexpr uint32_t kRegionsOffsetBytes = 64;  // of the first region, after the mask of those that are taken

}  // namespace

void Scratch::begin() { main_base_ = functions_.function().values.add({.op = Op::k_add}); }

ValueId Scratch::base() {
  ++use_count_;
  return functions_.is_in_callback() ? callback_base_ : main_base_;
}

uint32_t Scratch::reserve(uint32_t size_bytes) {
  const auto at = static_cast<uint32_t>(round_up(size_bytes_, kAlignBytes));
  size_bytes_ = at + size_bytes;
  return at;
}

ValueId Scratch::address(uint32_t offset_bytes) { return offset(base(), offset_bytes); }

void Scratch::with_callback(ValueId base, const std::function<void()>& body) {
  const ValueId outer = callback_base_;
  callback_base_ = base;
  body();
  callback_base_ = outer;
}

ValueId Scratch::region_number() {
  ++use_count_;  // it is known after the setup
  if (!number_slot_.valid()) number_slot_ = new_slot("scratch_region");
  return read_slot(number_slot_);
}

uint32_t Scratch::region_bytes() const { return std::bit_ceil(std::max(size_bytes_, 64u)); }

Scratch::CpuMemory Scratch::add_cpu_memory(uint32_t size_bytes) {
  const CpuMemory out{static_cast<uint32_t>(round_up(module_.scratch_bytes, 64)), std::bit_ceil(size_bytes)};
  module_.scratch_bytes = out.at + out.stride_bytes * module_.cpu_slots();
  return out;
}

ValueId Scratch::cpu_address(const CpuMemory& memory) {
  const ValueId slot = ir().binary(Op::k_and, cpu(), module_.cpu_slots() - 1);
  const ValueId distance = ir().binary(Op::k_shl, slot, std::countr_zero(memory.stride_bytes));
  return ir().binary(Op::k_add, ir().map_value(module_.scratch_map(), memory.at), distance);
}

ValueId Scratch::cpu_memory(const std::string& name, uint32_t size_bytes) {
  const auto [known, is_new] = cpu_memories_.try_emplace(name);
  if (is_new) known->second = add_cpu_memory(size_bytes);
  return cpu_address(known->second);
}

ValueId Scratch::write_setup(uint32_t region_count, const std::function<void()>& if_none_is_free) {
  ir::Function& main = functions_.function();
  if (number_slot_.valid()) write_slot(number_slot_, ir().constant(0));
  if (size_bytes_ == 0) {
    main.values[main_base_] = {.op = Op::k_konst};
  } else if (context_.is_preemptible && module_.kernel.has(kernel::Feature::kAtomicFetch)) {  // see program/ring.h
    const ValueId of_cpu = cpu_address(add_cpu_memory(region_bytes() * region_count + kRegionsOffsetBytes));
    const ValueId region = take_region(of_cpu, region_count, if_none_is_free);
    main.values[main_base_].operands = {region, ir().constant(kRegionsOffsetBytes)};
  } else {
    const ValueId of_cpu = cpu_address(add_cpu_memory(region_bytes()));
    main.values[main_base_].operands = {of_cpu, ir().constant(0)};
  }
  main.blocks[ir().block()].instructions.push_back(main_base_);
  return main_base_;
}

ValueId Scratch::take_region(ValueId cpu_address, uint32_t region_count, const std::function<void()>& if_none_is_free) {
  cpu_slot_ = new_slot("scratch_cpu");
  if (!number_slot_.valid()) number_slot_ = new_slot("scratch_region");
  const BlockId got = ir().add_block("scratch");
  const ValueId index = ir().add_block_parameter(got);
  for (uint32_t i = 0; i < region_count; ++i) {
    const ValueId old = ir().atomic(Op::k_atomic_fetch_or, 8, cpu_address, {ir().constant(int64_t{1} << i)});
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
  write_slot(cpu_slot_, cpu_address);
  write_slot(number_slot_, index);
  const ValueId distance = ir().binary(Op::k_shl, index, std::countr_zero(region_bytes()));
  return ir().binary(Op::k_add, cpu_address, distance);
}

void Scratch::write_release() {
  if (!cpu_slot_.valid()) return;
  const ValueId bit = ir().binary(Op::k_shl, ir().constant(1), read_slot(number_slot_));
  const ValueId mask = ir().unary(Op::k_not, bit);
  ir().atomic(Op::k_atomic_fetch_and, 8, read_slot(cpu_slot_), {mask});
}

}  // namespace espy::lower
