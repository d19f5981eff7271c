#include "bpf/fold_operands.h"

#include "ir/analysis.h"
#include "ir/memory.h"

namespace espy::bpf {

using namespace ir;

FoldedAddress fold_address(const Function& function, ValueId address, int64_t offset) {
  FoldedAddress out{address, offset};
  while (true) {
    const Instruction& add = function.values[out.base];
    if (add.op != Op::k_add) return out;
    const Instruction& constant = function.values[add.operands[1]];
    if (constant.op != Op::k_konst || !fits_offset(constant.imm) || !fits_offset(out.offset + constant.imm)) return out;
    out = {add.operands[0], out.offset + constant.imm};
  }
}

Folding::Folding(const Function& function)
    : function_(function), uses_(function.values.size()), incoming_(function.values.size()) {
  raw_uses_ = use_counts(function);
  for (const Block& block : function.blocks) {
    for (const ir::Target& target : function.values[block.instructions.back()].targets)
      for (size_t i = 0; i < target.arguments.size(); ++i)
        incoming_[function.blocks[target.block].parameters[i].index].push_back(target.arguments[i]);
  }
  for (BlockId block : reverse_post_order(function)) {
    for (ValueId id : function.blocks[block].instructions) {
      Effect effect = effect_of(function.values[id]);
      if (effect == Effect::write || effect == Effect::end) use_operands(function.values[id]);
    }
  }
  while (!todo_.empty()) {
    ValueId value = todo_.back();
    todo_.pop_back();
    use_operands(function.values[value]);
    for (ValueId argument : incoming_[value.index]) use(argument);
  }
}

const Instruction* Folding::compare_of(const Instruction& branch) const {
  if (branch.op != Op::k_branch || (branch.condition != Condition::eq && branch.condition != Condition::ne))
    return nullptr;
  const Instruction& zero = function_.values[branch.operands[1]];
  const Instruction& compare = function_.values[branch.operands[0]];
  bool is_compare = compare.op >= Op::k_eq && compare.op <= Op::k_sle;
  bool fits = is_compare && zero.op == Op::k_konst && zero.imm == 0 && raw_uses_[branch.operands[0].index] == 1;
  return fits ? &compare : nullptr;
}

void Folding::use(ValueId value) {
  FoldedAddress folded = fold_address(function_, value, 0);
  if (is_simple(function_.values[folded.base])) return;
  if (uses_[value.index]++ > 0) return;
  Effect effect = effect_of(function_.values[value]);
  if (effect == Effect::pure || effect == Effect::read) todo_.push_back(value);
}

void Folding::use_operands(const Instruction& instruction) {
  auto use_address = [&](ValueId address) { use(fold_address(function_, address, 0).base); };
  if (accesses_memory(instruction.op) || instruction.op == Op::k_zero) {
    for (size_t i = 0; i < instruction.operands.size(); ++i)
      i == 0 ? use_address(instruction.operands[i]) : use(instruction.operands[i]);
    return;
  }
  if (instruction.op == Op::k_copy) {
    for (ValueId operand : instruction.operands) use_address(operand);
    return;
  }
  const Instruction* compare = compare_of(instruction);
  for (ValueId operand : compare ? compare->operands : instruction.operands) use(operand);
}

}  // namespace espy::bpf
