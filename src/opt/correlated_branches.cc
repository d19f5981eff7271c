// correlated_branches: removes branches that a dominating branch decides.
//
// After an edge of `branch ne p, 0`, the condition is known wherever the edge's target dominates. A branch on the same
// two values with the same condition, its negation or its mirror image becomes a jump. Ranges are not considered (`x <
// 5` implies nothing about `x < 9`): the pass removes only checks that the kernel's verifier knows from an identical
// one.
#include <unordered_map>

#include "ir/analysis.h"
#include "ir/conditions.h"
#include "opt/evaluate.h"
#include "opt/passes.h"

namespace espy::opt {
namespace {

using namespace ir;

struct Fact {
  Condition condition;
  ValueId a, b;
  bool operator==(const Fact&) const = default;
};

struct FactHash {
  size_t operator()(const Fact& fact) const {
    return (fact.a.index * 0x9e3779b1u ^ fact.b.index) * 16 + static_cast<size_t>(fact.condition);
  }
};

class Decider {
 public:
  explicit Decider(Function& function) : function_(function), dominators_(function) {}
  bool run();

 private:
  // Returns the fact with the lower-numbered value first.
  Fact normal(Condition condition, ValueId a, ValueId b) const {
    return b < a ? Fact{mirrored(condition), b, a} : Fact{condition, a, b};
  }
  void assume(BlockId block, BlockId parent);
  void learn(const Fact& fact, bool is_true);
  bool decide(BlockId block);

  Function& function_;
  Dominators dominators_;
  std::unordered_map<Fact, bool, FactHash> known_;
  std::vector<Fact> learnt_;  // in order, for undoing
  std::vector<uint32_t> edges_;
};

bool Decider::run() {
  Predecessors predecessors(function_);
  edges_.resize(function_.blocks.size());
  for (BlockId block : function_.blocks.ids()) edges_[block.index] = static_cast<uint32_t>(predecessors[block].size());
  struct Visit {
    BlockId block;
    size_t learnt = 0;
    bool is_left = false;
  };
  bool changed = false;
  std::vector<Visit> stack{{BlockId{0}}};
  while (!stack.empty()) {
    Visit& visit = stack.back();
    if (visit.is_left) {
      for (; learnt_.size() > visit.learnt; learnt_.pop_back()) known_.erase(learnt_.back());
      stack.pop_back();
      continue;
    }
    visit.is_left = true;
    visit.learnt = learnt_.size();
    BlockId block = visit.block;
    if (dominators_.parent(block).valid()) assume(block, dominators_.parent(block));
    changed |= decide(block);
    for (BlockId child : dominators_.children(block)) stack.push_back({child});
  }
  return changed;
}

// Adds the fact that the only edge into `block` implies. (The block's parent in the tree is the source of that edge.)
void Decider::assume(BlockId block, BlockId parent) {
  const Instruction& end = terminator(function_, parent);
  if (edges_[block.index] != 1 || end.op != Op::k_branch) return;
  bool is_true = end.targets[0].block == block;
  learn(normal(end.condition, end.operands[0], end.operands[1]), is_true);
  if (std::optional<Condition> opposite = negation(end.condition))
    learn(normal(*opposite, end.operands[0], end.operands[1]), !is_true);
}

void Decider::learn(const Fact& fact, bool is_true) {
  if (known_.emplace(fact, is_true).second) learnt_.push_back(fact);
}

bool Decider::decide(BlockId block) {
  Instruction& end = terminator(function_, block);
  if (end.op != Op::k_branch || known_.empty()) return false;
  auto known = known_.find(normal(end.condition, end.operands[0], end.operands[1]));
  if (known == known_.end()) return false;
  end = {.op = Op::k_jump, .targets = {end.targets[known->second ? 0 : 1]}, .span = end.span};
  return true;
}

}  // namespace

bool correlated_branches(Function& function) { return Decider(function).run(); }

}  // namespace espy::opt
