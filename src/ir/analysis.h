// Facts about a function that passes and the back end compute when they need them: edges, orders, dominators, uses,
// liveness. All are snapshots: a change of the function's blocks or values makes them stale. All take time linear in
// the function, or in their own size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/ir.h"

namespace espy::ir {

inline const Instruction& terminator(const Function& function, BlockId block) {
  return function.values[function.blocks[block].instructions.back()];
}
inline Instruction& terminator(Function& function, BlockId block) {
  return function.values[function.blocks[block].instructions.back()];
}

// Calls `visit(ValueId&)` for each value that the instruction uses: operands, then target arguments.
template <class InstructionType, class Visit>
void for_each_use(InstructionType& instruction, Visit visit) {
  for (auto& operand : instruction.operands) visit(operand);
  for (auto& target : instruction.targets)
    for (auto& argument : target.arguments) visit(argument);
}

// What the instruction does to memory, its helper or kfunc taken into account: a pure helper's call is pure.
Effect effect_of(const Instruction& instruction);

// The same computation on the same operands (and of the same kind of load), spans aside.
bool is_same_operation(const Instruction& a, const Instruction& b);

// Edges into each block. A branch whose targets are one block counts twice.
class Predecessors {
 public:
  explicit Predecessors(const Function& function);
  std::span<const BlockId> operator[](BlockId block) const {
    return {blocks_.data() + starts_[block.index], starts_[block.index + 1] - starts_[block.index]};
  }

 private:
  std::vector<uint32_t> starts_;
  std::vector<BlockId> blocks_;
};

// Blocks that can be reached, each after all of its predecessors except those of back edges; the entry first.
std::vector<BlockId> reverse_post_order(const Function& function);

class Dominators {
 public:
  explicit Dominators(const Function& function);
  const std::vector<BlockId>& order() const { return order_; }  // reverse post order
  bool is_reachable(BlockId block) const { return number_[block.index] != kUnreachable; }
  BlockId parent(BlockId block) const { return parent_[block.index]; }  // immediate dominator; none for the entry
  bool dominates(BlockId a, BlockId b) const;                           // true for a == b; false if unreachable
  // Children in the tree, in reverse post order.
  std::span<const BlockId> children(BlockId block) const {
    return {children_.data() + child_starts_[block.index], child_starts_[block.index + 1] - child_starts_[block.index]};
  }
  // The reachable blocks, each after its parent and right before its subtree.
  std::vector<BlockId> preorder() const;

 private:
  static constexpr uint32_t kUnreachable = ~uint32_t{0};
  void find_parents(const Function& function);
  void number_tree();

  std::vector<BlockId> order_;
  std::vector<uint32_t> number_;  // place in order_
  std::vector<BlockId> parent_;
  std::vector<uint32_t> child_starts_;
  std::vector<BlockId> children_;
  std::vector<uint32_t> first_, last_;  // preorder numbers of a block and of the last one in its subtree
};

// Blocks where joins of definitions in a block may need parameters.
std::vector<std::vector<BlockId>> dominance_frontiers(const Function& function, const Dominators& dominators);

// How often each value is used, as an operand or a target argument, in the blocks.
std::vector<uint32_t> use_counts(const Function& function);

// The block that each value stands in, its parameters included; none for values in no block.
std::vector<BlockId> defining_blocks(const Function& function);

// Uses `replacement[v]` where `v` was used, wherever that is valid; chains are followed, and shortened on the way.
void replace_all_uses(Function& function, std::vector<ValueId>& replacement);
// The end of `value`'s chain.
ValueId resolve(std::vector<ValueId>& replacement, ValueId value);

// Which values are alive where blocks meet. Target arguments are used by the jumping block's end; parameters are born
// at their block's start and so in no `in` of it. `is_tracked` may leave out what the back end makes anew at each use.
struct Liveness {
  std::vector<std::vector<ValueId>> in, out;  // by block; ascending by value
};
Liveness liveness(const Function& function, bool (*is_tracked)(const Instruction&) = nullptr);

// Drops blocks that are not marked and gives the others new ids, in order. Nothing that stays may jump to what goes.
void keep_blocks(Function& function, const std::vector<bool>& keep);

}  // namespace espy::ir
