#include "lower/own_time.h"

#include <utility>

#include "ir/builder.h"
#include "lower/control.h"

namespace espy::lower {

namespace {

using ir::BlockId;
using ir::Condition;
using ir::Op;

// Writes, in the current block, what ends a run that began at the time in `begun`, 0 if it is not timed.
void write_end(ir::Builder& ir, const program::Program& program, program::ProgramId id, ir::SlotId begun) {
  const ir::ValueId begun_ns = ir.load(8, ir.slot(begun));
  when(ir, Condition::ne, begun_ns, ir.constant(0), [&] {
    const ir::ValueId taken_ns = ir.binary(Op::k_sub, ir.call(ir::Helper::ktime_get_ns, {}), begun_ns);
    const uint32_t offset = program.own_times.offset_bytes + id.index * 16;
    ir.atomic_add(8, ir.map_value(program.globals, offset), ir.constant(1));
    ir.atomic_add(8, ir.map_value(program.globals, offset + 8), taken_ns);
  });
}

}  // namespace

void add_own_time(const program::Program& program, program::ProgramId id, ir::Function& main) {
  ir::Builder ir(main);
  const ir::SlotId begun = ir.add_variable("begun");
  const BlockId entry{0};
  const BlockId body = ir.add_block("timed");
  std::swap(main.blocks[entry].instructions, main.blocks[body].instructions);
  ir.enter(entry);
  ir.store(8, ir.slot(begun), ir.constant(0));
  const ir::ValueId is_on = ir.load(8, ir.map_value(program.globals, program.own_times.switch_offset));
  when(ir, Condition::ne, is_on, ir.constant(0),
       [&] { ir.store(8, ir.slot(begun), ir.call(ir::Helper::ktime_get_ns, {})); });
  ir.jump(body);
  const BlockId first_new = main.blocks.next_id();
  for (BlockId block{0}; block.index < first_new.index; ++block.index) {
    if (main.blocks[block].instructions.empty()) continue;
    const ir::ValueId last = main.blocks[block].instructions.back();
    if (main.values[last].op != Op::k_ret) continue;
    main.blocks[block].instructions.pop_back();
    ir.enter(block);
    write_end(ir, program, id, begun);
    main.blocks[ir.block()].instructions.push_back(last);
  }
}

}  // namespace espy::lower
