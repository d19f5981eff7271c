// Builds a function of IR by appending instructions to a current block.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

#include "ir/ir.h"

namespace espy::ir {

class Builder {
 public:
  explicit Builder(Function& function) : function_(function) {}

  Function& function() { return function_; }
  // Sets the span of the instructions that follow.
  void at(source::Span span) { span_ = span; }
  source::Span span() const { return span_; }

  BlockId add_block(std::string name = {});
  ValueId add_block_parameter(BlockId block);
  void enter(BlockId block) { block_ = block; }
  BlockId block() const { return block_; }
  // Returns true if the current block has a terminator; further instructions then need a new block.
  bool is_terminated() const;

  SlotId add_slot(uint32_t size_bytes, uint32_t align_bytes, std::string name = {});
  SlotId add_variable(std::string name);  // 8 bytes; mem2reg turns it into values

  ValueId constant(int64_t value);
  ValueId binary(Op op, ValueId a, ValueId b);
  ValueId binary(Op op, ValueId a, int64_t b) { return binary(op, a, constant(b)); }
  ValueId unary(Op op, ValueId a);
  ValueId context();
  ValueId param(uint32_t index);
  ValueId slot(SlotId slot);
  ValueId map(MapId map);
  ValueId map_value(MapId map, int64_t offset_bytes);
  ValueId function_address(FunctionId function);
  ValueId load(uint8_t width, ValueId address, int64_t offset_bytes = 0, bool is_signed = false);
  void store(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes = 0);
  void atomic_add(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes = 0);
  ValueId atomic(Op op, uint8_t width, ValueId address, std::initializer_list<ValueId> values,
                 int64_t offset_bytes = 0);
  void store_release(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes = 0);
  ValueId call(Helper helper, std::initializer_list<ValueId> arguments);
  ValueId kfunc(uint32_t btf_id, std::initializer_list<ValueId> arguments, bool is_pure = false);
  ValueId call_function(FunctionId function, std::initializer_list<ValueId> arguments);
  void zero(ValueId address, uint32_t size_bytes);
  void copy(ValueId destination, ValueId source, uint32_t size_bytes);

  void jump(BlockId target, std::initializer_list<ValueId> arguments = {});
  void branch(Condition condition, ValueId a, ValueId b, BlockId if_true, BlockId if_false);
  void branch(Condition condition, ValueId a, int64_t b, BlockId if_true, BlockId if_false) {
    branch(condition, a, constant(b), if_true, if_false);
  }
  void may_goto(BlockId go_on, BlockId spent);
  void ret(ValueId value);
  // Builds for (index = 0; index < times; ++index), with a bound that the verifier can count. Requires times >= 1.
  // `body` may leave the loop by a jump to `done`, which is the current block afterwards.
  void count_up(int64_t times, const std::function<void(ValueId index, BlockId done)>& body);
  void ret(int64_t value) { ret(constant(value)); }

  ValueId add(Instruction instruction);

 private:
  Function& function_;
  BlockId block_;
  source::Span span_;
};

}  // namespace espy::ir
