#include "ir/builder.h"

#include "ir/analysis.h"

namespace espy::ir {

ValueId Builder::add(Instruction instruction) {
  CHECK(block_.valid());
  CHECK(!is_terminated());
  if (!instruction.span.valid()) instruction.span = span_;
  ValueId id = function_.values.add(std::move(instruction));
  function_.blocks[block_].instructions.push_back(id);
  return id;
}

BlockId Builder::add_block(std::string name) { return function_.blocks.add({.name = std::move(name)}); }

ValueId Builder::add_block_parameter(BlockId block) {
  ValueId id = function_.values.add({.op = Op::k_param, .span = span_});
  function_.blocks[block].parameters.push_back(id);
  return id;
}

bool Builder::is_terminated() const {
  const std::vector<ValueId>& instructions = function_.blocks[block_].instructions;
  return !instructions.empty() && info(function_.values[instructions.back()].op).effect == Effect::end;
}

SlotId Builder::add_slot(uint32_t size_bytes, uint32_t align_bytes, std::string name) {
  return function_.slots.add({.size_bytes = size_bytes, .align_bytes = align_bytes, .name = std::move(name)});
}

SlotId Builder::add_variable(std::string name) {
  return function_.slots.add({.name = std::move(name), .is_variable = true});
}

ValueId Builder::constant(int64_t value) { return add({.op = Op::k_konst, .imm = value}); }

ValueId Builder::binary(Op op, ValueId a, ValueId b) {
  CHECK(info(op).operands == 2 && info(op).effect == Effect::pure);
  return add({.op = op, .operands = {a, b}});
}

ValueId Builder::unary(Op op, ValueId a) {
  CHECK(info(op).operands == 1 && info(op).effect == Effect::pure);
  return add({.op = op, .operands = {a}});
}

ValueId Builder::context() { return add({.op = Op::k_context}); }
ValueId Builder::param(uint32_t index) { return add({.op = Op::k_param, .imm = index}); }
ValueId Builder::slot(SlotId slot) { return add({.op = Op::k_slot, .slot = slot}); }
ValueId Builder::map(MapId map) { return add({.op = Op::k_map, .map = map}); }

ValueId Builder::map_value(MapId map, int64_t offset_bytes) {
  return add({.op = Op::k_map_value, .imm = offset_bytes, .map = map});
}

ValueId Builder::function_address(FunctionId function) { return add({.op = Op::k_func, .function = function}); }

ValueId Builder::load(uint8_t width, ValueId address, int64_t offset_bytes, bool is_signed) {
  return add({.op = Op::k_load, .width = width, .is_signed = is_signed, .imm = offset_bytes, .operands = {address}});
}

void Builder::store(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes) {
  add({.op = Op::k_store, .width = width, .imm = offset_bytes, .operands = {address, value}});
}

void Builder::atomic_add(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes) {
  add({.op = Op::k_atomic_add, .width = width, .imm = offset_bytes, .operands = {address, value}});
}

ValueId Builder::atomic(Op op, uint8_t width, ValueId address, std::initializer_list<ValueId> values,
                        int64_t offset_bytes) {
  CHECK(is_atomic(op));
  Instruction instruction{.op = op, .width = width, .imm = offset_bytes, .operands = {address}};
  instruction.operands.insert(instruction.operands.end(), values);
  return add(std::move(instruction));
}

void Builder::store_release(uint8_t width, ValueId address, ValueId value, int64_t offset_bytes) {
  add({.op = Op::k_store_release, .width = width, .imm = offset_bytes, .operands = {address, value}});
}

ValueId Builder::call(Helper helper, std::initializer_list<ValueId> arguments) {
  return add({.op = Op::k_call,
              .is_nullable = helper == Helper::map_lookup_elem || helper == Helper::map_lookup_percpu_elem ||
                             helper == Helper::task_storage_get,
              .helper = helper,
              .operands = arguments});
}

ValueId Builder::kfunc(uint32_t btf_id, std::initializer_list<ValueId> arguments, bool is_pure) {
  return add({.op = Op::k_kfunc, .is_pure = is_pure, .imm = btf_id, .operands = arguments});
}

ValueId Builder::call_function(FunctionId function, std::initializer_list<ValueId> arguments) {
  return add({.op = Op::k_call_function, .function = function, .operands = arguments});
}

void Builder::zero(ValueId address, uint32_t size_bytes) {
  add({.op = Op::k_zero, .imm = size_bytes, .operands = {address}});
}

void Builder::copy(ValueId destination, ValueId source, uint32_t size_bytes) {
  add({.op = Op::k_copy, .imm = size_bytes, .operands = {destination, source}});
}

void Builder::jump(BlockId target, std::initializer_list<ValueId> arguments) {
  add({.op = Op::k_jump, .targets = {{target, arguments}}});
}

void Builder::branch(Condition condition, ValueId a, ValueId b, BlockId if_true, BlockId if_false) {
  add({.op = Op::k_branch, .condition = condition, .operands = {a, b}, .targets = {{if_true, {}}, {if_false, {}}}});
}

void Builder::may_goto(BlockId go_on, BlockId spent) {
  add({.op = Op::k_may_goto, .targets = {{go_on, {}}, {spent, {}}}});
}

void Builder::ret(ValueId value) { add({.op = Op::k_ret, .operands = {value}}); }

void Builder::count_up(int64_t times, const std::function<void(ValueId index, BlockId done)>& body) {
  const BlockId head = add_block("each");
  const BlockId done = add_block("done");
  const ValueId index = add_block_parameter(head);
  jump(head, {constant(0)});
  enter(head);
  body(index, done);
  const ValueId next = binary(Op::k_add, index, 1);
  const BlockId again = add_block();
  branch(Condition::ult, next, times, again, done);
  enter(again);
  jump(head, {next});
  enter(done);
}

}  // namespace espy::ir
