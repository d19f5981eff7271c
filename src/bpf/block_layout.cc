#include "bpf/block_layout.h"

#include <algorithm>

#include "ir/analysis.h"

namespace espy::bpf {
namespace {

using namespace ir;

// Compared with 0, these fail seldom: a map lookup that misses, a full ring.
bool may_be_null_pointer(const Instruction& instruction) {
  if (instruction.is_nullable) return true;
  if (instruction.op != Op::k_call) return false;
  return instruction.helper == Helper::map_lookup_elem || instruction.helper == Helper::ringbuf_reserve ||
         instruction.helper == Helper::map_lookup_percpu_elem || instruction.helper == Helper::task_storage_get;
}

// Index of the branch's target that a null pointer takes; -1 if it is no such test.
int null_target(const Function& function, const Instruction& end) {
  if (end.op != Op::k_branch || !may_be_null_pointer(function.values[end.operands[0]])) return -1;
  const Instruction& b = function.values[end.operands[1]];
  if (b.op != Op::k_konst || b.imm != 0) return -1;
  return end.condition == Condition::eq ? 0 : end.condition == Condition::ne ? 1 : -1;
}

}  // namespace

std::vector<BlockId> block_order(const Function& function) {
  std::vector<BlockId> order = reverse_post_order(function);
  // A block is warm if the entry, or a warm block by other than a null test, leads to it. In reverse post order one
  // round decides all but what only a back edge leads to, of which there is nothing.
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
