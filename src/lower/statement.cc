// Statements: assignments, loops, ways out.
#include "lower/frame.h"
#include "lower/unit.h"

namespace espy::lower {
namespace {

constexpr uint32_t kLoopLimit = 8192;  // turns of a loop where the kernel has no budget of its own

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

void UnitLowering::statements(const std::vector<StmtId>& list) {
  for (const StmtId each : list) statement(each);
}

void UnitLowering::statement(StmtId id) {
  ir().at(ast()[id].span);
  const auto declared = [&] { return unit_->fact(id).variable; };
  const auto begin = [&](VariableId variable) {
    const TypeId type = unit_->variables[variable].type;
    if (!type.valid() || types()[type].kind == Kind::kVoid) return;
    if (is_scalar(type)) return write_variable(variable, {type, ir().constant(0)});
    declare(variable);
    zero(variable_address(variable), types()[type].size_bytes);
  };
  for (const VariableId variable : unit_->fact(id).hoisted) begin(variable);
  std::visit(Overloaded{
                 [&](const syntax::ExprStmt& node) { discard(node.value); },
                 [&](const syntax::Discard& node) { discard(node.value); },
                 [&](const syntax::Assign& node) { assign(node); },
                 [&](const syntax::Let& node) {
                   if (!declared().valid()) return;
                   return node.value.valid() ? assign_variable(declared(), node.value) : begin(declared());
                 },
                 [&](const syntax::While& node) { loop_while(node); },
                 [&](const syntax::Unroll& node) { unroll(node); },
                 [&](const syntax::ForMap& node) { for_map(id, node); },
                 [&](const syntax::ForRange& node) { for_range(id, node); },
                 [&](const syntax::Break&) { leave_loop(true); },
                 [&](const syntax::Continue&) { leave_loop(false); },
                 [&](const syntax::Return& node) { return_from(node); },
             },
             ast()[id].node);
}

// An expression whose value nobody wants.
void UnitLowering::discard(ExprId expr) {
  ir().at(ast()[expr].span);
  if (const ExprId replacement = unit_->fact(expr).replacement; replacement.valid()) return discard(replacement);
  if (const auto* block = ast().get<syntax::Block>(expr)) {
    statements(block->statements);
    if (block->value.valid()) discard(block->value);
  } else if (const auto* branch = ast().get<syntax::If>(expr)) {
    if (branch->is_comptime) {
      const ExprId kept = unit_->fact(expr).branch_taken ? branch->then_branch : branch->else_branch;
      if (kept.valid()) discard(kept);
      return;
    }
    const BlockId then = ir().add_block("then");
    const BlockId join = ir().add_block("join");
    const BlockId otherwise = branch->else_branch.valid() ? ir().add_block("else") : join;
    branch_on(branch->condition, then, otherwise);
    ir().enter(then);
    discard(branch->then_branch);
    ir().jump(join);
    if (branch->else_branch.valid()) {
      ir().enter(otherwise);
      discard(branch->else_branch);
      ir().jump(join);
    }
    ir().enter(join);
  } else if (const auto* unary = ast().get<syntax::Unary>(expr); unary && unary->op >= syntax::UnaryOp::kPreIncrement) {
    step(expr, *unary, false);
  } else {
    value(expr);
  }
}

// ---- Assignment

void UnitLowering::assign_variable(VariableId variable, ExprId value_expr) {
  write_variable(variable, value(value_expr));
}

void UnitLowering::assign(const syntax::Assign& node) {
  const check::ExprFact& target = unit_->fact(node.target);
  if (node.op) {
    const bool is_unsigned = is_unsigned_pair(node.target, node.value);
    update(
        node.target, *node.op, [&] { return value(node.value); }, target.type, is_unsigned, false, false);
  } else if (target.variable.valid() && ast().get<syntax::Variable>(node.target)) {
    assign_variable(target.variable, node.value);
  } else if (target.map.valid()) {
    assign_element(element(node.target), node.value);
  } else {
    const Operand operand = value(node.value);
    const Operand to = place(node.target);
    if (to.is_address && to.space == AddressSpace::kBpf) store_converted(to.value, operand, to.type);
  }
}

// ---- Loops

// The verifier walks a loop once for each value of a counter that it knows, a million steps at most. A number that lies
// on the stack, and one byte of which was written again, is just a number to it: the loop is walked until nothing new
// is seen.
ValueId UnitLowering::launder(ValueId value) {
  ir::SlotId& slot = launder_slots_[function_id_];
  if (!slot.valid()) slot = ir().add_slot(8, 8, "hidden");
  const ValueId place = ir().slot(slot);
  ir().store(8, place, value);
  ir().store(1, place, value);
  return ir().load(8, place);
}

ValueId UnitLowering::opaque_copy(ValueId number) {
  return is_walked_loop() ? ir().unary(Op::k_opaque, number) : number;
}

Operand UnitLowering::opaque_copy(Operand operand) {
  const types::Type& type = types()[operand.type];
  if (types::is_integer(type) && type.kind != Kind::kBool) operand.value = opaque_copy(operand.value);
  return operand;
}

// What a loop may change looks unknown from its first turn on.
void UnitLowering::launder_variables() {
  if (!kernel_has_may_goto()) return;  // the verifier has to see the end of each loop itself
  const std::vector<Home> homes = activation().homes;
  for (uint32_t i = 0; i < homes.size(); ++i) {
    const bool is_number = types::is_integer(types()[unit_->variables[VariableId{i}].type]);
    const bool is_here = homes[i].slot.valid() && homes[i].owner == function_id_;
    if (is_number && is_here) write_slot(homes[i].slot, launder(read_slot(homes[i].slot)));
  }
}

// Up to where the loop's condition is to be tested. Where the kernel has no budget of its own for loops, the turns are
// counted.
UnitLowering::LoopBlocks UnitLowering::begin_loop(const std::string& name) {
  const LoopBlocks blocks{ir().add_block(name), ir().add_block("body"), ir().add_block("next"), ir().add_block("done"),
                          ir().add_block("spent")};
  const BlockId test = ir().add_block("test");
  ir::SlotId turns;
  if (!kernel_has_may_goto()) write_slot(turns = new_slot("turns"), ir().constant(0));
  launder_variables();
  ir().jump(blocks.head);
  ir().enter(blocks.head);
  if (kernel_has_may_goto()) {
    ir().may_goto(test, blocks.spent);
  } else {
    const ValueId turn = read_slot(turns);
    write_slot(turns, ir().binary(Op::k_add, turn, 1));
    ir().branch(Condition::ult, turn, kLoopLimit, test, blocks.spent);
  }
  ir().enter(test);
  activation().loops.push_back({blocks.next, blocks.done});
  return blocks;
}

// A loop that the kernel ends before its condition does is counted, and ends those around it, too: what they would have
// done is missing.
void UnitLowering::end_loop(const LoopBlocks& blocks) {
  ir().enter(blocks.next);
  ir().jump(blocks.head);
  ir().enter(blocks.spent);
  count_loss(program::LossKind::kLoop, "a loop had more turns than the kernel allows; loops cut short");
  ir().jump(activation().loops.front().done);
  activation().loops.pop_back();
  ir().enter(blocks.done);
}

void UnitLowering::loop_while(const syntax::While& node) {
  const LoopBlocks loop = begin_loop("while");
  branch_on(node.condition, loop.body, loop.done);
  ir().enter(loop.body);
  discard(node.body);
  ir().jump(loop.next);
  end_loop(loop);
}

void UnitLowering::for_range(StmtId id, const syntax::ForRange& node) {
  const VariableId variable = unit_->fact(id).variable;
  const TypeId type = unit_->variables[variable].type;
  const ir::SlotId counter = new_slot("next");
  const ValueId begin = scalar(node.begin);
  write_slot(counter, kernel_has_may_goto() ? launder(begin) : begin);
  const ir::SlotId limit = new_slot("limit");
  write_slot(limit, scalar(node.end));
  const LoopBlocks loop = begin_loop("for");
  const ValueId index = read_slot(counter);
  ir().branch(Condition::slt, opaque_copy(index), opaque_copy(read_slot(limit)), loop.body, loop.done);
  ir().enter(loop.body);
  write_slot(counter, ir().binary(Op::k_add, index, 1));
  write_variable(variable, {type, index});
  discard(node.body);
  ir().jump(loop.next);
  end_loop(loop);
}

void UnitLowering::unroll(const syntax::Unroll& node) {
  const int64_t count = integer(node.count).value_or(0);
  const BlockId done = ir().add_block("done");
  for (int64_t i = 0; i < count; ++i) {
    const BlockId next = ir().add_block("turn");
    activation().loops.push_back({next, done});
    discard(node.body);
    activation().loops.pop_back();
    ir().jump(next);
    ir().enter(next);
  }
  ir().jump(done);
  ir().enter(done);
}

// The body becomes a callback (map, key, value, frame); what it returns says whether to go on.
void UnitLowering::for_map(StmtId id, const syntax::ForMap& node) {
  const VariableId variable = unit_->fact(id).variable;
  const ScriptMapId map_id = unit_->fact(node.map).map;
  const program::ScriptMap map = script_map(map_id);
  if (!map.map.valid()) return;  // never used with a key
  has_callbacks_ = true;
  const FunctionId outer = function_id_;
  ir::Builder* outer_builder = builder_;
  const ValueId outer_frame = callback_frame_;
  const ValueId outer_scratch = callback_scratch_;

  const FunctionId callback = begin_function("for" + std::to_string(into_.functions.size()), 4, true);
  {
    function_id_ = callback;
    ir::Builder builder(function());
    builder_ = &builder;
    builder.at(ast()[id].span);
    builder.enter(builder.add_block("entry"));
    callback_frame_ = builder.param(3);
    callback_scratch_ = builder.load(8, callback_frame_, kFrameScratchOffset);
    const ValueId key = builder.param(1);
    const ValueId value = builder.param(2);
    const TypeId pair = unit_->variables[variable].type;
    const types::Type layout = types()[pair];
    const ValueId address = memory(layout.size_bytes, "pair");
    zero(address, layout.size_bytes);
    if (layout.members.size() == 2) {
      const TypeId key_type = layout.members[0].type;
      store_converted(address, load(key, map.key), key_type);
      const ValueId at = offset(address, layout.members[1].offset_bytes());
      const Operand whole =
          map.storage == program::Storage::kPercpuHash ? merged({map_id, key}) : load(value, map.value);
      store_converted(at, whole, layout.members[1].type);
    }
    write_variable(variable, {pair, address, true});
    const BlockId next = builder.add_block("next");
    const BlockId done = builder.add_block("done");
    std::vector<Loop> loops;
    std::swap(loops, activation().loops);
    ++activation().callback_depth;
    activation().loops.push_back({next, done});
    discard(node.body);
    activation().loops.pop_back();
    ir().jump(next);
    --activation().callback_depth;
    std::swap(loops, activation().loops);
    builder.enter(next);
    builder.ret(0);
    builder.enter(done);
    builder.ret(1);
  }
  function_id_ = outer;
  builder_ = outer_builder;
  callback_frame_ = outer_frame;
  callback_scratch_ = outer_scratch;

  ir().call(Helper::for_each_map_elem, {ir().map(map.map), ir().function_address(callback), frame(), ir().constant(0)});
  const ValueId left = ir().load(8, frame(), kFrameLeftOffset);
  when(Condition::ne, left, ir().constant(0), [&] {
    when(Condition::eq, left, ir().constant(kLeftAction), [&] { end_action(); });
    if (activation().callback_depth == 0) ir().store(8, frame(), ir().constant(0), kFrameLeftOffset);
    leave_activation();
  });
}

void UnitLowering::leave_loop(bool is_break) {
  if (activation().loops.empty()) return;
  const Loop loop = activation().loops.back();
  go_to(is_break ? loop.done : loop.next);
}

void UnitLowering::return_from(const syntax::Return& node) {
  if (node.value.valid()) {
    const Activation& current = activation();
    const TypeId type = unit_->function ? unit_->result : types().int64();
    if (unit_->function || main_unit_.context.returns_value) {
      Operand result = convert(value(node.value), type);
      if (result.is_address) {
        const ValueId copy = memory(types()[type].size_bytes, {});
        store(copy, result);
        result.value = copy;
      }
      if (current.result_offset) {
        ir().store(8, frame(), result.value, current.result_offset);
      } else if (!is_in_callback() || unit_->function) {
        write_slot(current.result, result.value);
      }
    } else {
      discard(node.value);
    }
  }
  leave_activation();
}

}  // namespace espy::lower
