// cse: common subexpression elimination.
//
// Dominator-scoped value numbering: visits blocks in preorder of the dominator tree; a hash table maps each computation
// to its leader, the first value that computes it. A leader that does not dominate the current block cannot dominate a
// later one in preorder, so it is overwritten and no scopes need to be undone.
//
// Covers pure operations, helpers and kfuncs, and loads from the context, which is read-only. A computation on a value
// that a branch compares by order is only merged within its block, since the kernel's verifier derives bounds from
// comparisons, and the later computation may depend on the one in between.
#include "ir/analysis.h"
#include "opt/evaluate.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

class ValueNumbering {
 public:
  explicit ValueNumbering(Function& function) : function_(function), dominators_(function) {}
  bool run();

 private:
  bool takes_part(const Instruction& instruction) const;
  uint64_t hash(const Instruction& instruction) const;
  // Returns the leader if it dominates this block; else makes `id` the leader.
  ValueId leader(ValueId id, BlockId block);

  Function& function_;
  Dominators dominators_;
  std::vector<ValueId> table_;  // open addressing; its size is a power of two
  std::vector<BlockId> block_;  // by value
  std::vector<bool> is_checked_;
  std::vector<ValueId> replacement_;
  bool context_is_written_ = false;
};

bool ValueNumbering::run() {
  size_t size = 16;
  while (size < 2 * function_.values.size()) size *= 2;
  table_.resize(size);
  block_.resize(function_.values.size());
  is_checked_.resize(function_.values.size());
  replacement_.resize(function_.values.size());
  for (const Block& block : function_.blocks) {
    for (ValueId id : block.instructions) {
      const Instruction& each = function_.values[id];
      if (each.op == Op::k_branch && each.condition != Condition::eq && each.condition != Condition::ne)
        for (ValueId compared : each.operands) is_checked_[compared.index] = true;
      if (each.op >= Op::k_store && each.op <= Op::k_copy && !each.operands.empty())
        context_is_written_ |= function_.values[each.operands[0]].op == Op::k_context;
    }
  }
  bool changed = false;
  for (BlockId block : dominators_.preorder()) {
    for (ValueId id : function_.blocks[block].instructions) {
      Instruction& instruction = function_.values[id];
      for_each_use(instruction, [&](ValueId& used) { used = resolve(replacement_, used); });
      if (!takes_part(instruction)) continue;
      ValueId same = leader(id, block);
      if (same == id) continue;
      replacement_[id.index] = same;
      changed = true;
    }
    if (!changed) continue;
    // Removes replaced instructions at once, so that the next round sees no change.
    std::erase_if(function_.blocks[block].instructions, [&](ValueId id) { return replacement_[id.index].valid(); });
  }
  if (changed) replace_all_uses(function_, replacement_);
  return changed;
}

bool ValueNumbering::takes_part(const Instruction& instruction) const {
  if (instruction.op == Op::k_load)
    return function_.values[instruction.operands[0]].op == Op::k_context && !context_is_written_;
  return effect_of(instruction) == Effect::pure && instruction.op != Op::k_opaque;
}

uint64_t ValueNumbering::hash(const Instruction& instruction) const {
  uint64_t h = static_cast<uint64_t>(instruction.op);
  auto mix = [&](uint64_t part) { h = (h ^ part) * 0x9e3779b97f4a7c15 + (h >> 29); };
  mix(static_cast<uint64_t>(instruction.imm));
  mix(instruction.map.index ^ uint64_t{instruction.slot.index} << 20 ^ uint64_t{instruction.function.index} << 40);
  mix(static_cast<uint64_t>(instruction.helper) << 8 | instruction.width);
  for (ValueId operand : instruction.operands) mix(operand.index);
  return h ^ (h >> 32);
}

ValueId ValueNumbering::leader(ValueId id, BlockId block) {
  const Instruction& instruction = function_.values[id];
  block_[id.index] = block;
  for (uint64_t at = hash(instruction);; ++at) {
    ValueId& entry = table_[at & (table_.size() - 1)];
    if (!entry.valid()) return entry = id;
    if (!is_same_operation(function_.values[entry], instruction)) continue;
    bool is_bound_to_block = false;
    for (ValueId operand : instruction.operands) is_bound_to_block |= is_checked_[operand.index];
    BlockId from = block_[entry.index];
    if (is_bound_to_block ? from == block : dominators_.dominates(from, block)) return entry;
    return entry = id;
  }
}

}  // namespace

bool cse(Function& function) { return ValueNumbering(function).run(); }

}  // namespace espy::opt
