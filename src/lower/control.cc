#include "lower/control.h"

namespace espy::lower {

using ir::BlockId;
using ir::ValueId;

ValueId select(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
               const std::function<ValueId()>& if_false) {
  const BlockId yes = ir.add_block("then");
  const BlockId no = ir.add_block("else");
  const BlockId join = ir.add_block("join");
  const ValueId result = ir.add_block_parameter(join);
  ir.branch(condition, a, b, yes, no);
  ir.enter(yes);
  const ValueId first = if_true();
  ir.jump(join, {first});
  ir.enter(no);
  const ValueId second = if_false();
  ir.jump(join, {second});
  ir.enter(join);
  return result;
}

void when(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
          const std::function<void()>& otherwise) {
  const BlockId yes = ir.add_block("then");
  const BlockId join = ir.add_block("join");
  const BlockId no = otherwise ? ir.add_block("else") : join;
  ir.branch(condition, a, b, yes, no);
  ir.enter(yes);
  if (then) then();
  ir.jump(join);
  if (otherwise) {
    ir.enter(no);
    otherwise();
    ir.jump(join);
  }
  ir.enter(join);
}

void end_program_if(ir::Builder& ir, ir::Condition condition, ValueId a, ValueId b) {
  const BlockId leave = ir.add_block("leave");
  const BlockId stay = ir.add_block("stay");
  ir.branch(condition, a, b, leave, stay);
  end_program_in(ir, leave, stay);
}

void end_program_in(ir::Builder& ir, BlockId leave, BlockId stay) {
  ir.enter(leave);
  ir.ret(0);
  ir.enter(stay);
}

ValueId first_difference(ir::Builder& ir, ValueId a, ValueId b, uint32_t size_bytes) {
  const ir::SlotId found = ir.add_variable("difference");
  ir.count_up(size_bytes, [&](ValueId index, BlockId done) {
    const ValueId left = ir.load(1, ir.binary(ir::Op::k_add, a, index));
    const ValueId right = ir.load(1, ir.binary(ir::Op::k_add, b, index));
    const ValueId difference = ir.binary(ir::Op::k_sub, left, right);
    ir.store(8, ir.slot(found), difference);
    const BlockId next = ir.add_block("next");
    ir.branch(ir::Condition::ne, difference, ir.constant(0), done, next);
    ir.enter(next);
  });
  return ir.load(8, ir.slot(found));
}

}  // namespace espy::lower
