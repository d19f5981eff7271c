// Analyses of a function, computed on demand by passes and the back end: edges, block orders, dominators, uses,
// liveness. Each is a snapshot, invalidated by any change to blocks or values, and takes time linear in the function or
// in the size of its result.
#pragma once

#include <algorithm>
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

// Calls `visit(ValueId&)` for each use in the instruction: operands, then target arguments.
template <class InstructionType, class Visit>
void for_each_use(InstructionType& instruction, Visit visit) {
  for (auto& operand : instruction.operands) visit(operand);
  for (auto& target : instruction.targets)
    for (auto& argument : target.arguments) visit(argument);
}

// Returns the effect of the instruction. The effect of a call is the effect of its helper or kfunc.
Effect effect_of(const Instruction& instruction);

// Returns true for constants and the addresses of slots, maps, map values and functions, which can be computed
// anywhere.
bool is_simple(const Instruction& instruction);

// Returns true if both instructions compute the same value from the same operands. Ignores spans.
bool is_same_operation(const Instruction& a, const Instruction& b);

// The edges into each block. A branch with two equal targets counts twice.
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

// Returns the reachable blocks in reverse post order: each after its predecessors, back edges aside.
std::vector<BlockId> reverse_post_order(const Function& function);

class Dominators {
 public:
  explicit Dominators(const Function& function);
  const std::vector<BlockId>& order() const { return order_; }  // reverse post order
  bool is_reachable(BlockId block) const { return number_[block.index] != kUnreachable; }
  BlockId parent(BlockId block) const { return parent_[block.index]; }  // immediate dominator; none for the entry
  bool dominates(BlockId a, BlockId b) const;                           // true if a == b; false for unreachable blocks
  // Returns the children in the dominator tree, in reverse post order.
  std::span<const BlockId> children(BlockId block) const {
    return {children_.data() + child_starts_[block.index], child_starts_[block.index + 1] - child_starts_[block.index]};
  }
  // Returns the reachable blocks in preorder of the dominator tree.
  std::vector<BlockId> preorder() const;

 private:
  static constexpr uint32_t kUnreachable = ~uint32_t{0};
  void find_parents(const Function& function);
  void number_tree();

  std::vector<BlockId> order_;
  std::vector<uint32_t> number_;  // position in order_
  std::vector<BlockId> parent_;
  std::vector<uint32_t> child_starts_;
  std::vector<BlockId> children_;
  std::vector<uint32_t> first_, last_;  // preorder numbers of a block and of the last one in its subtree
};

// Dominance frontiers: the blocks in which definitions of a block may need a block parameter.
std::vector<std::vector<BlockId>> dominance_frontiers(const Function& function, const Dominators& dominators);

// Returns the number of uses of each value, operands and target arguments alike.
std::vector<uint32_t> use_counts(const Function& function);

// Returns the block that defines each value, block parameters included; invalid for values in no block.
std::vector<BlockId> defining_blocks(const Function& function);

// Replaces uses of each `v` for which `replacement[v]` is valid. Follows chains and compresses them.
void replace_all_uses(Function& function, std::vector<ValueId>& replacement);
// Returns the end of the replacement chain of `value`.
ValueId resolve(std::vector<ValueId>& replacement, ValueId value);

// Live values at block boundaries. Target arguments are uses at the end of the jumping block; block parameters are
// defined at the start of their block and are not live into it. `is_tracked` excludes values, such as the values that
// the back end rematerializes at each use.
struct Liveness {
  std::vector<std::vector<ValueId>> in, out;  // by block; ascending by value
};
Liveness liveness(const Function& function, bool (*is_tracked)(const Instruction&) = nullptr);

// Removes the unmarked blocks and renumbers the others, in order. Requires that no marked block jumps to an unmarked
// one.
void keep_blocks(Function& function, const std::vector<bool>& keep);

// ---- Alias analysis by the rules of docs/internals/ir.md, for passes that move or remove memory accesses.

enum class Base : uint8_t {
  kSlot,
  kMap,
  kOther
};  // a stack object; the only element of an array map; any other pointer

struct Location {
  Base base = Base::kOther;
  uint32_t id = 0;       // of the slot, the map, or the pointer's value
  int64_t offset = 0;    // from the base, in bytes
  bool is_exact = true;  // false: unknown offset in the object
  bool is_slot() const { return base == Base::kSlot; }
  bool has_same_base(const Location& other) const { return base == other.base && id == other.id; }
};

// The locations of all values of a function, and the private stack objects. Their address is only used for accesses and
// call arguments, so no other pointer refers to them.
class Memory {
 public:
  explicit Memory(const Function& function);
  // Returns the location of an access through `address` with an immediate offset.
  Location at(ValueId address, int64_t offset = 0) const {
    Location location = locations_[address.index];
    location.offset += offset;
    return location;
  }
  bool is_private(SlotId slot) const { return is_private_[slot.index]; }
  bool is_private(const Location& location) const { return location.is_slot() && is_private_[location.id]; }

  // Calls `visit(Location, size_bytes)` for each location that the instruction may write through an operand; size 0 is
  // unknown. Returns true if it may also write any other memory that is not private.
  template <class Visit>
  bool for_each_write(const Instruction& instruction, Visit visit) const;
  // The same for reads.
  template <class Visit>
  bool for_each_read(const Instruction& instruction, Visit visit) const;

 private:
  void locate(const Function& function, ValueId id);
  void find_escapes(const Instruction& instruction);

  std::vector<Location> locations_;  // by value
  std::vector<bool> is_private_;     // by slot
};

bool is_atomic(Op op);
// Returns true for loads, stores and atomic operations, which access `width` bytes at their first operand + imm.
bool accesses_memory(Op op);
bool is_call(Op op);
// Returns false for helpers that only read through their pointer arguments.
bool writes_arguments(const Instruction& call);
// Returns false for helpers that access only memory of their arguments.
bool writes_elsewhere(const Instruction& call);

template <class Visit>
bool Memory::for_each_write(const Instruction& instruction, Visit visit) const {
  if (instruction.op == Op::k_store || instruction.op == Op::k_store_release || is_atomic(instruction.op)) {
    visit(at(instruction.operands[0], instruction.imm), static_cast<uint32_t>(instruction.width));
  } else if (instruction.op == Op::k_zero || instruction.op == Op::k_copy) {
    visit(at(instruction.operands[0]), static_cast<uint32_t>(instruction.imm));
  } else if (is_call(instruction.op)) {
    if (writes_arguments(instruction))
      for (ValueId argument : instruction.operands) visit(at(argument), 0u);
    return writes_elsewhere(instruction);
  }
  return false;
}

template <class Visit>
bool Memory::for_each_read(const Instruction& instruction, Visit visit) const {
  if (instruction.op == Op::k_load || is_atomic(instruction.op)) {
    visit(at(instruction.operands[0], instruction.imm), static_cast<uint32_t>(instruction.width));
  } else if (instruction.op == Op::k_copy) {
    visit(at(instruction.operands[1]), static_cast<uint32_t>(instruction.imm));
  } else if (is_call(instruction.op)) {
    for (ValueId argument : instruction.operands) visit(at(argument), 0u);
    return true;
  }
  return false;
}

// ---- Liveness of stack objects.

class SlotLiveness {
 public:
  explicit SlotLiveness(const Function& function);
  // Returns the slots whose content at the start of the block may be read later.
  std::span<const SlotId> at(BlockId block) const { return live_[block.index]; }
  bool is_live_at(BlockId block, SlotId slot) const { return std::ranges::binary_search(at(block), slot); }

 private:
  std::vector<std::vector<SlotId>> live_;  // by block, ascending
};

}  // namespace espy::ir
