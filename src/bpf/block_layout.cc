#include "bpf/block_layout.h"

#include <algorithm>

#include "ir/analysis.h"

namespace espy::bpf {
namespace {

using namespace ir;

// Operations whose result is rarely 0: map lookups, ring reservations.
bool may_be_null_pointer(const Instruction& instruction) {
  if (instruction.is_nullable) return true;
  if (instruction.op != Op::k_call) return false;
  return instruction.helper == Helper::map_lookup_elem || instruction.helper == Helper::ringbuf_reserve ||
         instruction.helper == Helper::map_lookup_percpu_elem || instruction.helper == Helper::task_storage_get;
}

// Returns the index of the target for a null pointer; -1 if the branch is not a null check.
int null_target(const Function& function, const Instruction& end) {
  if (end.op != Op::k_branch || !may_be_null_pointer(function.values[end.operands[0]])) return -1;
  const Instruction& b = function.values[end.operands[1]];
  if (b.op != Op::k_konst || b.imm != 0) return -1;
  return end.condition == Condition::eq ? 0 : end.condition == Condition::ne ? 1 : -1;
}

}  // namespace

std::vector<BlockId> block_order(const Function& function) {
  std::vector<BlockId> order = reverse_post_order(function);
  // A block is warm if it is the entry, or a successor of a warm block other than by a failed null check. One round in
  // reverse post order suffices, since no block is reachable by back edges alone.
  std::vector<bool> is_warm(function.blocks.size());
  is_warm[0] = true;
  for (BlockId block : order) {
    if (!is_warm[block.index]) continue;
    const Instruction& end = terminator(function, block);
    int null_side = null_target(function, end);
    for (size_t i = 0; i < end.targets.size(); ++i)
      if (static_cast<int>(i) != null_side) is_warm[end.targets[i].block.index] = true;
  }
  std::stable_partition(order.begin(), order.end(), [&](BlockId block) { return is_warm[block.index]; });
  return order;
}

}  // namespace espy::bpf
