// simplify_cfg: removes blocks and edges.
//
//   - a branch with two equal targets becomes a jump
//   - an edge to a block that only jumps is redirected to that block's target
//   - an edge that passes a constant to a block that only compares it is redirected to the result's target
//   - a parameter that receives the same value or constant on every edge is replaced by it
//   - a block whose only predecessor jumps to it is merged into it
#include <unordered_map>

#include "ir/analysis.h"
#include "ir/ir.h"
#include "opt/pipeline.h"

namespace espy::opt {

namespace {

using namespace ir;

class Simplifier {
 public:
  explicit Simplifier(Function& function) : function_(function) {}
  bool run();

 private:
  bool equal_targets();
  bool thread_edges();
  bool thread(Target& target);
  bool thread_jump(const Block& block, Target& target);
  bool thread_comparison(const Block& block, Target& target);
  bool uniform_parameters();
  bool uniform_parameter(BlockId block, size_t index, const Predecessors& predecessors);
  bool merge_chains();

  // Returns the value that `value` of `block` has on an edge with these arguments.
  static ValueId seen_from(const Block& block, const Target& edge, ValueId value) {
    for (size_t i = 0; i < block.parameters.size(); ++i)
      if (block.parameters[i] == value) return edge.arguments[i];
    return value;
  }
  bool are_equal_constants(ValueId a, ValueId b) const {
    const Instruction &x = function_.values[a], &y = function_.values[b];
    return x.op == Op::k_konst && y.op == Op::k_konst && x.imm == y.imm;
  }

  Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<ValueId> replacement_;
};

bool Simplifier::run() {
  replacement_.resize(function_.values.size());
  // Parameters first: without uniform parameters, more blocks only compare.
  bool changed = uniform_parameters();
  changed |= equal_targets();
  if (thread_edges()) {
    changed = true;
    std::vector<bool> keep(function_.blocks.size());
    for (BlockId block : reverse_post_order(function_)) keep[block.index] = true;
    keep_blocks(function_, keep);
  }
  changed |= uniform_parameters();
  return merge_chains() || changed;
}

bool Simplifier::equal_targets() {
  bool changed = false;
  for (BlockId block : function_.blocks.ids()) {
    Instruction& end = terminator(function_, block);
    if (end.op != Op::k_branch || end.targets[0].block != end.targets[1].block ||
        end.targets[0].arguments != end.targets[1].arguments)
      continue;
    end = {.op = Op::k_jump, .targets = {end.targets[0]}, .span = end.span};
    changed = true;
  }
  return changed;
}

bool Simplifier::thread_edges() {
  uses_ = use_counts(function_);
  bool changed = false;
  for (BlockId block : function_.blocks.ids())
    for (Target& target : terminator(function_, block).targets)
      // Bounded: blocks that only jump may form a cycle.
      for (int steps = 0; steps < 8 && thread(target); ++steps) changed = true;
  return changed;
}

bool Simplifier::thread(Target& target) {
  const Block& block = function_.blocks[target.block];
  const Instruction& end = terminator(function_, target.block);
  if (end.op == Op::k_jump && end.targets[0].block != target.block) return thread_jump(block, target);
  if (end.op == Op::k_branch) return thread_comparison(block, target);
  return false;
}

bool Simplifier::thread_jump(const Block& block, Target& target) {
  if (block.instructions.size() != 1) return false;
  const Target& next = terminator(function_, target.block).targets[0];
  // Parameters of the block must not be used elsewhere, since this edge no longer provides them there.
  size_t uses_here = 0, uses = 0;
  for (ValueId parameter : block.parameters) {
    uses += uses_[parameter.index];
    for (ValueId argument : next.arguments) uses_here += argument == parameter;
  }
  if (uses != uses_here) return false;
  Target threaded{next.block, {}};
  for (ValueId argument : next.arguments) threaded.arguments.push_back(seen_from(block, target, argument));
  // The other edges still enter the block, which uses its parameters.
  for (ValueId argument : threaded.arguments) ++uses_[argument.index];
  target = std::move(threaded);
  return true;
}

bool Simplifier::thread_comparison(const Block& block, Target& target) {
  const Instruction& end = terminator(function_, target.block);
  if (block.parameters.empty()) return false;
  // Only constants may precede the branch, and no value of the block may be used elsewhere.
  for (ValueId id : block.instructions) {
    const Instruction& each = function_.values[id];
    size_t uses = 0;
    for (ValueId operand : end.operands) uses += operand == id;
    if (&each != &end && (each.op != Op::k_konst || uses_[id.index] != uses)) return false;
  }
  for (ValueId parameter : block.parameters) {
    size_t uses = 0;
    for (ValueId operand : end.operands) uses += operand == parameter;
    if (uses_[parameter.index] != uses) return false;
  }
  const Instruction& a = function_.values[seen_from(block, target, end.operands[0])];
  const Instruction& b = function_.values[seen_from(block, target, end.operands[1])];
  if (a.op != Op::k_konst || b.op != Op::k_konst) return false;
  const Target& next = end.targets[evaluate(end.condition, a.imm, b.imm) ? 0 : 1];
  if (next.block == target.block) return false;
  target = Target(next);
  for (ValueId argument : target.arguments) ++uses_[argument.index];
  return true;
}

bool Simplifier::uniform_parameters() {
  Predecessors predecessors(function_);
  bool changed = false;
  for (BlockId block : reverse_post_order(function_))
    for (size_t i = function_.blocks[block].parameters.size(); i-- > 0;)
      changed |= uniform_parameter(block, i, predecessors);
  if (changed) replace_all_uses(function_, replacement_);
  return changed;
}

bool Simplifier::uniform_parameter(BlockId block, size_t index, const Predecessors& predecessors) {
  ValueId parameter = function_.blocks[block].parameters[index], same;
  bool is_uniform = true, needs_constant = false;
  auto for_each_argument = [&](auto visit) {
    BlockId last;
    for (BlockId from : predecessors[block]) {
      if (from == last) continue;  // a branch with two equal targets occurs twice in a row
      last = from;
      for (Target& target : terminator(function_, from).targets)
        if (target.block == block) visit(target.arguments);
    }
  };
  for_each_argument([&](std::vector<ValueId>& arguments) {
    ValueId argument = resolve(replacement_, arguments[index]);
    if (argument == parameter || argument == same) return;
    if (same.valid() && !are_equal_constants(argument, same)) is_uniform = false;
    needs_constant |= same.valid();
    same = argument;
  });
  if (!is_uniform || !same.valid()) return false;
  std::vector<ValueId>& instructions = function_.blocks[block].instructions;
  if (needs_constant) {
    same = function_.values.add({.imm = function_.values[same].imm});
    instructions.insert(instructions.begin(), same);
    replacement_.resize(function_.values.size());
  }
  replacement_[parameter.index] = same;
  for_each_argument([&](std::vector<ValueId>& arguments) { arguments.erase(arguments.begin() + index); });
  std::vector<ValueId>& parameters = function_.blocks[block].parameters;
  parameters.erase(parameters.begin() + index);
  return true;
}

bool Simplifier::merge_chains() {
  Predecessors predecessors(function_);
  std::vector<bool> keep(function_.blocks.size(), true);
  bool changed = false;
  for (BlockId block : reverse_post_order(function_)) {
    if (!keep[block.index]) continue;
    for (;;) {
      ValueId end = function_.blocks[block].instructions.back();
      if (function_.values[end].op != Op::k_jump) break;
      BlockId next = function_.values[end].targets[0].block;
      if (next == block || predecessors[next].size() != 1 || !function_.blocks[next].parameters.empty()) break;
      std::vector<ValueId>& instructions = function_.blocks[block].instructions;
      std::vector<ValueId>& tail = function_.blocks[next].instructions;
      instructions.pop_back();
      instructions.insert(instructions.end(), tail.begin(), tail.end());
      keep[next.index] = false;
      changed = true;
    }
  }
  if (changed) keep_blocks(function_, keep);
  return changed;
}

}  // namespace

bool simplify_cfg(Function& function) { return Simplifier(function).run(); }

// ---- correlated_branches: removes branches that a dominating branch decides.
//
// After an edge of `branch ne p, 0`, the condition is known wherever the edge's target dominates. A branch on the same
// two values with the same condition, its negation or its mirror image becomes a jump. Ranges are not considered (`x <
// 5` implies nothing about `x < 9`): the pass removes only checks that the kernel's verifier knows from an identical
// one.

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
