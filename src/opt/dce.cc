// dce: dead code elimination.
//
// Marks the operands of the roots (writes and terminators), transitively; the arguments of a block parameter only when
// the parameter is marked, so that variables that are only carried around a loop disappear. Then removes all that is
// unmarked, and unreachable blocks.
#include "ir/analysis.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

class Sweeper {
 public:
  explicit Sweeper(Function& function) : function_(function) {}
  bool run();

 private:
  bool drop_unreachable();
  void mark();
  bool sweep();
  void need(ValueId value) {
    if (is_needed_[value.index]) return;
    is_needed_[value.index] = true;
    work_.push_back(value);
  }

  Function& function_;
  std::vector<bool> is_needed_;
  std::vector<ValueId> work_;
};

bool Sweeper::run() {
  bool changed = drop_unreachable();
  mark();
  return sweep() || changed;
}

bool Sweeper::drop_unreachable() {
  std::vector<bool> keep(function_.blocks.size());
  std::vector<BlockId> order = reverse_post_order(function_);
  if (order.size() == keep.size()) return false;
  for (BlockId block : order) keep[block.index] = true;
  keep_blocks(function_, keep);
  return true;
}

void Sweeper::mark() {
  is_needed_.resize(function_.values.size());
  // For a parameter: its block and position. The block is invalid for other values.
  struct Place {
    BlockId block;
    uint32_t index = 0;
  };
  std::vector<Place> place(function_.values.size());
  for (BlockId block : function_.blocks.ids()) {
    const std::vector<ValueId>& parameters = function_.blocks[block].parameters;
    for (uint32_t i = 0; i < parameters.size(); ++i) place[parameters[i].index] = {block, i};
    for (ValueId id : function_.blocks[block].instructions) {
      Effect effect = effect_of(function_.values[id]);
      if (effect == Effect::write || effect == Effect::end) need(id);
    }
  }
  Predecessors predecessors(function_);
  while (!work_.empty()) {
    ValueId value = work_.back();
    work_.pop_back();
    for (ValueId operand : function_.values[value].operands) need(operand);
    auto [block, index] = place[value.index];
    if (!block.valid()) continue;
    for (BlockId from : predecessors[block])
      for (const Target& target : terminator(function_, from).targets)
        if (target.block == block) need(target.arguments[index]);
  }
}

bool Sweeper::sweep() {
  bool changed = false;
  for (BlockId block : function_.blocks.ids()) {
    std::vector<ValueId>& instructions = function_.blocks[block].instructions;
    changed |= std::erase_if(instructions, [&](ValueId id) { return !is_needed_[id.index]; }) != 0;
    for (Target& target : terminator(function_, block).targets) {
      const std::vector<ValueId>& parameters = function_.blocks[target.block].parameters;
      size_t kept = 0;
      for (size_t i = 0; i < target.arguments.size(); ++i)
        if (is_needed_[parameters[i].index]) target.arguments[kept++] = target.arguments[i];
      target.arguments.resize(kept);
    }
  }
  for (Block& block : function_.blocks)
    changed |= std::erase_if(block.parameters, [&](ValueId id) { return !is_needed_[id.index]; }) != 0;
  return changed;
}

}  // namespace

bool dce(Function& function) { return Sweeper(function).run(); }

}  // namespace espy::opt
