// Branches as builtins write them.
#include "lower/lowering.h"

namespace espy::lower {

ValueId Lowering::select(ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                         const std::function<ValueId()>& if_false) {
  const ir::BlockId yes = ir().add_block("then");
  const ir::BlockId no = ir().add_block("else");
  const ir::BlockId join = ir().add_block("join");
  const ValueId result = ir().add_block_parameter(join);
  ir().branch(condition, a, b, yes, no);
  ir().enter(yes);
  const ValueId first = if_true();
  ir().jump(join, {first});
  ir().enter(no);
  const ValueId second = if_false();
  ir().jump(join, {second});
  ir().enter(join);
  return result;
}

void Lowering::when(ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
                    const std::function<void()>& otherwise) {
  const ir::BlockId yes = ir().add_block("then");
  const ir::BlockId join = ir().add_block("join");
  const ir::BlockId no = otherwise ? ir().add_block("else") : join;
  ir().branch(condition, a, b, yes, no);
  ir().enter(yes);
  if (then) then();
  ir().jump(join);
  if (otherwise) {
    ir().enter(no);
    otherwise();
    ir().jump(join);
  }
  ir().enter(join);
}

}  // namespace espy::lower
