#include "lower/loops.h"

#include <utility>

#include "lower/branches.h"
#include "lower/expressions.h"
#include "lower/statements.h"
#include "types/recent_layout.h"

namespace espy::lower {

// Writes the code up to the loop's condition. Kernels without may_goto do not bound loops, so the iterations are
// counted.
Loops::LoopBlocks Loops::begin(const std::string& name, uint32_t most_turns) {
  const LoopBlocks blocks{ir().add_block(name), ir().add_block("body"), ir().add_block("next"), ir().add_block("done"),
                          ir().add_block("spent")};
  const BlockId test = ir().add_block("test");
  ir::SlotId turns;
  if (!laundering_.kernel_has_may_goto()) write_slot(turns = new_slot("turns"), ir().constant(0));
  variables_.launder_all();
  ir().jump(blocks.head);
  ir().enter(blocks.head);
  if (laundering_.kernel_has_may_goto()) {
    ir().may_goto(test, blocks.spent);
  } else {
    const ValueId turn = read_slot(turns);
    write_slot(turns, ir().binary(Op::k_add, turn, 1));
    ir().branch(Condition::ult, turn, most_turns, test, blocks.spent);
  }
  ir().enter(test);
  scope_.activation().loops.push_back({blocks.next, blocks.done});
  return blocks;
}

// A loop that is cut short is counted and also ends the loops around it, whose iterations would be incomplete.
void Loops::end(const LoopBlocks& blocks) {
  std::vector<Loop>& loops = scope_.activation().loops;
  ir().enter(blocks.next);
  ir().jump(blocks.head);
  ir().enter(blocks.spent);
  count_loss(program::LossKind::kLoop, "a loop had more turns than the kernel allows; loops cut short");
  ir().jump(loops.front().done);
  loops.pop_back();
  ir().enter(blocks.done);
}

void Loops::loop_while(const syntax::While& node) {
  const LoopBlocks loop = begin("while");
  branches_.branch_on(node.condition, loop.body, loop.done);
  ir().enter(loop.body);
  statements_.discard(node.body);
  ir().jump(loop.next);
  end(loop);
}

void Loops::for_range(StmtId id, const syntax::ForRange& node) {
  const VariableId variable = scope_.fact(id).variable;
  const TypeId type = scope_.unit().variables[variable].type;
  const ValueId first = expressions_.scalar(node.begin);
  count_up(first, expressions_.scalar(node.end), [&](ValueId index) {
    variables_.write(variable, {type, index});
    statements_.discard(node.body);
  });
}

// Runs `body` for the numbers from `first` to before `end`.
void Loops::count_up(ValueId first, ValueId end_value, const std::function<void(ValueId)>& body) {
  const ir::SlotId counter = new_slot("next");
  write_slot(counter, laundering_.kernel_has_may_goto() ? laundering_.launder(first) : first);
  const ir::SlotId limit = new_slot("limit");
  write_slot(limit, end_value);
  const LoopBlocks loop = begin("for");
  const ValueId index = read_slot(counter);
  ir().branch(Condition::slt, laundering_.opaque_copy(index), laundering_.opaque_copy(read_slot(limit)), loop.body,
              loop.done);
  ir().enter(loop.body);
  write_slot(counter, ir().binary(Op::k_add, index, 1));
  body(index);
  ir().jump(loop.next);
  end(loop);
}

void Loops::for_recent(StmtId id, const syntax::ForMap& node) {
  const VariableId variable = scope_.fact(id).variable;
  const Operand values = expressions_.value(node.map);
  const types::Type type = types()[values.type];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const ValueId taken = ir().load(8, values.value);
  const ir::SlotId counter = new_slot("next");
  const ValueId first = select(
      Condition::ugt, taken, ir().constant(type.count), [&] { return ir().binary(Op::k_sub, taken, type.count); },
      [&] { return ir().constant(0); });
  write_slot(counter, laundering_.kernel_has_may_goto() ? laundering_.launder(first) : first);
  const ir::SlotId limit = new_slot("limit");
  write_slot(limit, taken);
  const LoopBlocks loop = begin("recent", type.count + 1);
  const ValueId number = read_slot(counter);
  ir().branch(Condition::ult, laundering_.opaque_copy(number), laundering_.opaque_copy(read_slot(limit)), loop.body,
              loop.done);
  ir().enter(loop.body);
  const ValueId stamp = ir().binary(Op::k_add, number, 1);
  write_slot(counter, stamp);
  const ValueId slot = ir().binary(Op::k_and, number, layout.slots - 1);
  const ValueId stamps = offset(values.value, types::RecentLayout::kStampsOffset);
  const BlockId complete = ir().add_block("complete");
  ir().branch(Condition::eq, ir().load(8, ir().binary(Op::k_add, stamps, ir().binary(Op::k_shl, slot, 3))), stamp,
              complete, loop.next);
  ir().enter(complete);
  const ValueId distance = ir().binary(Op::k_mul, slot, ir().constant(layout.stride_bytes));
  const ValueId address = ir().binary(Op::k_add, offset(values.value, layout.values_offset), distance);
  variables_.write(variable, memory_.load(address, type.element));
  statements_.discard(node.body);
  ir().jump(loop.next);
  end(loop);
}

void Loops::unroll(const syntax::Unroll& node) {
  const int64_t count = scope_.integer(node.count).value_or(0);
  if (count > 1 && laundering_.kernel_has_may_goto()) {
    const auto repeat = [&](ValueId) { statements_.discard(node.body); };
    if (module_.makes_loops_for_unroll) return count_up(ir().constant(0), ir().constant(count), repeat);
    module_.has_copies = true;
  }
  const BlockId done = ir().add_block("done");
  for (int64_t i = 0; i < count; ++i) {
    const BlockId next = ir().add_block("turn");
    scope_.activation().loops.push_back({next, done});
    statements_.discard(node.body);
    scope_.activation().loops.pop_back();
    ir().jump(next);
    ir().enter(next);
  }
  ir().jump(done);
  ir().enter(done);
}

void Loops::leave(bool is_break) {
  if (scope_.activation().loops.empty()) return;
  const Loop loop = scope_.activation().loops.back();
  exits_.go_to(is_break ? loop.done : loop.next);
}

// ---- Over a map

void Loops::for_map(StmtId id, const syntax::ForMap& node) {
  if (!ast().get<syntax::Map>(node.map)) return for_recent(id, node);
  const VariableId variable = scope_.fact(id).variable;
  const ScriptMapId map_id = scope_.fact(node.map).map;
  const program::ScriptMap map = module_.script_map(map_id);
  if (!map.map.valid()) return;  // never used with a key
  const FunctionId callback = functions_.add_callback("for" + std::to_string(functions_.count()), 4,
                                                      [&] { write_callback(variable, map_id, node.body); });
  ir().call(Helper::for_each_map_elem,
            {ir().map(map.map), ir().function_address(callback), frame_.address(), ir().constant(0)});
  leave_after_callback();
}

// The callback's parameters are map, key, value, frame. It returns 0 to continue, 1 to end the iteration.
void Loops::write_callback(VariableId variable, ScriptMapId map, ExprId body) {
  const ValueId frame = ir().param(3);  // the first value, as Functions::finish() requires
  const ValueId scratch_base = ir().load(8, frame, kFrameScratchOffset);
  const auto write = [&] {
    const ValueId key = ir().param(1);
    const ValueId value = ir().param(2);
    const TypeId pair = scope_.unit().variables[variable].type;
    variables_.write(variable, {pair, make_pair(pair, map, key, value), true});
    const BlockId next = ir().add_block("next");
    const BlockId done = ir().add_block("done");
    Activation& activation = scope_.activation();
    std::vector<Loop> outer = std::exchange(activation.loops, std::vector<Loop>{{next, done}});
    ++activation.callback_depth;
    statements_.discard(body);
    --activation.callback_depth;
    activation.loops = std::move(outer);
    ir().jump(next);
    ir().enter(next);
    ir().ret(0);
    ir().enter(done);
    ir().ret(1);
  };
  frame_.with_callback(frame, [&] { scratch_.with_callback(scratch_base, write); });
}

// The loop's variable: a tuple of key and value.
ValueId Loops::make_pair(TypeId type, ScriptMapId map_id, ValueId key, ValueId value) {
  const program::ScriptMap map = module_.script_map(map_id);
  const types::Type layout = types()[type];
  const ValueId address = memory_.allocate(layout.size_bytes, "pair");
  memory_.zero(address, layout.size_bytes);
  if (layout.members.size() != 2) return address;
  conversions_.store_converted(address, memory_.load(key, map.key), layout.members[0].type);
  const ValueId at = offset(address, layout.members[1].offset_bytes());
  const bool has_copies = map.storage == program::Storage::kPercpuHash || map.storage == program::Storage::kSlotHash ||
                          types()[map.value].kind == Kind::kRecent;
  const Operand whole = has_copies ? aggregations_.merged({map_id, key}) : memory_.load(value, map.value);
  conversions_.store_converted(at, whole, layout.members[1].type);
  return address;
}

// Continues a `return` or exit() of the callback in the function that started the iteration.
void Loops::leave_after_callback() {
  const ValueId left = ir().load(8, frame_.address(), kFrameLeftOffset);
  when(Condition::ne, left, ir().constant(0), [&] {
    when(Condition::eq, left, ir().constant(kLeftAction), [&] { exits_.end_action(); });
    if (scope_.activation().callback_depth == 0) ir().store(8, frame_.address(), ir().constant(0), kFrameLeftOffset);
    exits_.end_function();
  });
}

}  // namespace espy::lower
