#include "bpf/select.h"

#include <algorithm>

#include "bpf/block_layout.h"
#include "bpf/select_impl.h"
#include "ir/analysis.h"
#include "ir/conditions.h"

namespace espy::bpf {

using namespace ir;

MachineFunction select(const Function& function, const Target& target) { return Selector(function, target).run(); }

MachineFunction Selector::run() {
  code_.enter(code_.add_block());  // a block of its own, since loops may jump to the entry
  read_inputs();
  code_.set_next(code_.block(), 0);
  for (BlockId block : block_order(function_)) select_block(block);
  return code_.finish();
}

// A block of IR starts in the machine block of the same number; further blocks have higher numbers.
void Selector::select_block(BlockId block) {
  code_.enter(block.index);
  for (ValueId id : function_.blocks[block].instructions) {
    const Instruction& instruction = function_.values[id];
    Effect effect = effect_of(instruction);
    code_.set_span(instruction.span);
    if (folding_.is_needed(id) || effect == Effect::write || effect == Effect::end) select(id);
  }
}

// Parameters and the context are in r1-r5 at entry and are copied first, wherever the function reads them.
void Selector::read_inputs() {
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& instruction = function_.values[id];
      if (!folding_.is_needed(id)) continue;
      if (instruction.op == Op::k_context) code_.move(code_.result(id), 1);
      if (instruction.op == Op::k_param) code_.move(code_.result(id), static_cast<Reg>(instruction.imm) + 1);
    }
  }
}

void Selector::select(ValueId id) {
  const Instruction& instruction = function_.values[id];
  switch (instruction.op) {
    case Op::k_context:
    case Op::k_param: return;
    case Op::k_call:
    case Op::k_kfunc:
    case Op::k_call_function: return memory_.call(id, instruction);
    case Op::k_jump:
    case Op::k_branch:
    case Op::k_may_goto:
    case Op::k_ret: return select_end(instruction);
    default: break;
  }
  bool is_memory = instruction.op >= Op::k_load && instruction.op <= Op::k_copy;
  is_memory ? memory_.select(id, instruction) : scalars_.select(id, instruction);
}

void Selector::select_end(const Instruction& end) {
  switch (end.op) {
    case Op::k_jump:
      assign_parameters(end.targets[0]);
      code_.set_next(code_.block(), end.targets[0].block.index);
      return;
    case Op::k_branch: return select_branch(end);
    case Op::k_may_goto: {
      uint32_t from = code_.block();
      code_.push({.code = kJmp | kJcond, .target = 0});
      uint32_t next = edge(end.targets[0]);
      uint32_t spent = edge(end.targets[1]);
      code_.set_next(from, next);
      code_.set_target(from, spent);
      return;
    }
    default: code_.put(0, end.operands[0]); code_.push({.code = kJmp | kExit});
  }
}

void Selector::select_branch(const Instruction& branch) {
  Condition condition = branch.condition;
  ValueId a = branch.operands[0], b = branch.operands[1];
  if (const Instruction* compare = folding_.compare_of(branch)) {
    bool if_zero = condition == Condition::eq;
    condition = as_condition(compare->op);
    if (if_zero) condition = *negation(condition);
    a = compare->operands[0];
    b = compare->operands[1];
  }
  uint32_t from = code_.block();
  scalars_.jump_if(condition, a, b, 0);
  uint32_t if_true = edge(branch.targets[0]);
  uint32_t if_false = edge(branch.targets[1]);
  code_.set_target(from, if_true);
  code_.set_next(from, if_false);
}

// Returns the block to jump to for `target`: the target, or a new block that sets its parameters. This splits edges
// with arguments; if all moves are coalesced, `encode` skips the empty block.
uint32_t Selector::edge(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  if (std::none_of(parameters.begin(), parameters.end(), [&](ValueId id) { return folding_.is_needed(id); }))
    return target.block.index;
  uint32_t block = code_.add_block();
  code_.enter(block);
  assign_parameters(target);
  code_.set_next(block, target.block.index);
  return block;
}

void Selector::assign_parameters(const ir::Target& target) {
  const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
  std::vector<std::pair<Reg, ValueId>> moves;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (folding_.is_needed(parameters[i]) && parameters[i] != target.arguments[i])
      moves.emplace_back(code_.result(parameters[i]), target.arguments[i]);
  }
  code_.move_all(std::move(moves));
}

}  // namespace espy::bpf
