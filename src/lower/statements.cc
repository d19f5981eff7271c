// Statements, loops and variables.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "lower/lowering.h"
#include "types/parts.h"

namespace espy::lower {

void Lowering::lower_statements(const std::vector<StmtId>& statements) {
  for (const StmtId each : statements) lower_statement(each);
}

void Lowering::lower_statement(StmtId id) {
  ir().at(ast()[id].span);
  for (const VariableId variable : unit().fact(id).hoisted) clear_variable(variable);
  std::visit(Overloaded{
                 [&](const syntax::ExprStmt& node) { discard(node.value); },
                 [&](const syntax::Discard& node) { discard(node.value); },
                 [&](const syntax::Assign& node) { lower_assign(node); },
                 [&](const syntax::Let& node) { lower_let(id, node); },
                 [&](const syntax::While& node) { lower_while(node); },
                 [&](const syntax::Unroll& node) { lower_unroll(node); },
                 [&](const syntax::ForMap& node) { lower_for_map(id, node); },
                 [&](const syntax::ForRange& node) { lower_for_range(id, node); },
                 [&](const syntax::Break&) { leave_loop(true); },
                 [&](const syntax::Continue&) { leave_loop(false); },
                 [&](const syntax::Return& node) { lower_return(node); },
             },
             ast()[id].node);
}

void Lowering::discard(ExprId expr) {
  ir().at(ast()[expr].span);
  if (const ExprId replacement = unit().fact(expr).replacement; replacement.valid()) return discard(replacement);
  if (const auto* block = ast().get<syntax::Block>(expr)) {
    lower_statements(block->statements);
    if (block->value.valid()) discard(block->value);
  } else if (const auto* branch = ast().get<syntax::If>(expr)) {
    discard_if(expr, *branch);
  } else if (const auto* unary = ast().get<syntax::Unary>(expr); unary && unary->op >= syntax::UnaryOp::kPreIncrement) {
    step(expr, *unary, false);
  } else {
    value(expr);
  }
}

void Lowering::discard_if(ExprId expr, const syntax::If& node) {
  if (const auto is_true = unit().fact(expr).branch_taken) {
    const ExprId taken = *is_true ? node.then_branch : node.else_branch;
    if (taken.valid()) discard(taken);
    return;
  }
  const BlockId then = ir().add_block("then");
  const BlockId join = ir().add_block("join");
  const BlockId otherwise = node.else_branch.valid() ? ir().add_block("else") : join;
  branch_on(node.condition, then, otherwise);
  ir().enter(then);
  discard(node.then_branch);
  ir().jump(join);
  if (node.else_branch.valid()) {
    ir().enter(otherwise);
    discard(node.else_branch);
    ir().jump(join);
  }
  ir().enter(join);
}

// ---- Assignment

void Lowering::lower_let(StmtId id, const syntax::Let& node) {
  const VariableId variable = unit().fact(id).variable;
  if (!variable.valid()) return;
  if (!node.value.valid()) return clear_variable(variable);
  write_variable(variable, value(node.value));
}

void Lowering::lower_assign(const syntax::Assign& node) {
  const check::ExprFact& target = unit().fact(node.target);
  if (node.op) return assign_with_operator(node);
  if (target.variable.valid() && ast().get<syntax::Variable>(node.target))
    return write_variable(target.variable, value(node.value));
  if (target.map.valid()) return assign_map(node.target, node.value);
  const Operand operand = value(node.value);
  const Operand to = location(node.target);
  if (to.is_address && to.space == AddressSpace::kBpf) store_converted(to.value, operand, to.type);
}

// ---- Return

void Lowering::lower_return(const syntax::Return& node) {
  const bool has_result = unit().function || context_.returns_value;
  if (node.value.valid() && has_result) {
    store_return_value(node.value);
  } else if (node.value.valid()) {
    discard(node.value);
  }
  end_function();
}

void Lowering::store_return_value(ExprId expr) {
  const bool is_function = unit().function != nullptr;
  const TypeId type = is_function ? unit().result : types().int64();
  Operand result = convert(value(expr), type);
  if (result.is_address) {
    const ValueId own = memory(types()[type].size_bytes, {});
    store(own, result);
    result.value = own;
  }
  if (is_function || !functions_.is_in_callback()) write_function_result(result.value);
}

// ---- Loops
//
// The body of a `for` over a map is a callback of bpf_for_each_map_elem, a function of its own. What it shares with the
// code around it is in the frame.

// Writes the code up to the loop's condition. Kernels without may_goto do not bound loops, so the iterations are
// counted.
Lowering::LoopBlocks Lowering::begin_loop(const std::string& name, uint32_t most_turns) {
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
    ir().branch(Condition::ult, turn, most_turns, test, blocks.spent);
  }
  ir().enter(test);
  activation_->loops.push_back({blocks.next, blocks.done});
  return blocks;
}

// A loop that is cut short is counted and also ends the loops around it, whose iterations would be incomplete.
void Lowering::end_loop(const LoopBlocks& blocks) {
  std::vector<Loop>& loops = activation_->loops;
  ir().enter(blocks.next);
  ir().jump(blocks.head);
  ir().enter(blocks.spent);
  count_loss(program::LossKind::kLoop, "loop(s) stopped at the kernel's iteration limit");
  ir().jump(loops.front().done);
  loops.pop_back();
  ir().enter(blocks.done);
}

void Lowering::lower_while(const syntax::While& node) {
  const LoopBlocks loop = begin_loop("while");
  branch_on(node.condition, loop.body, loop.done);
  ir().enter(loop.body);
  discard(node.body);
  ir().jump(loop.next);
  end_loop(loop);
}

void Lowering::lower_for_range(StmtId id, const syntax::ForRange& node) {
  const VariableId variable = unit().fact(id).variable;
  const TypeId type = unit().variables[variable].type;
  const ValueId first = scalar(node.begin);
  loop_from_to({.first = first, .end = scalar(node.end)}, [&](ValueId index, ValueId) {
    write_variable(variable, {type, index});
    discard(node.body);
  });
}

void Lowering::loop_from_to(const Range& range, const std::function<void(ValueId index, ValueId next)>& body) {
  const ir::SlotId counter = new_slot("next");
  write_slot(counter, kernel_has_may_goto() ? launder(range.first) : range.first);
  const ir::SlotId limit = new_slot("limit");
  write_slot(limit, range.end);
  const LoopBlocks loop = begin_loop(range.name, range.most_turns);
  const ValueId index = read_slot(counter);
  ir().branch(range.less, opaque_copy(index), opaque_copy(read_slot(limit)), loop.body, loop.done);
  ir().enter(loop.body);
  const ValueId next = ir().binary(Op::k_add, index, 1);
  write_slot(counter, next);
  body(index, next);
  ir().jump(loop.next);
  end_loop(loop);
}

// The values of a recent(), oldest first.
void Lowering::lower_for_recent(StmtId id, const syntax::ForMap& node) {
  const VariableId variable = unit().fact(id).variable;
  const Operand values = value(node.map);
  const types::Type type = types()[values.type];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const ValueId taken = ir().load(8, values.value);
  const ValueId first = select(
      Condition::ugt, taken, ir().constant(type.count), [&] { return ir().binary(Op::k_sub, taken, type.count); },
      [&] { return ir().constant(0); });
  const Range numbers{
      .first = first, .end = taken, .less = Condition::ult, .name = "recent", .most_turns = type.count + 1};
  loop_from_to(numbers, [&](ValueId number, ValueId stamp) {
    const ValueId slot = ir().binary(Op::k_and, number, layout.slots - 1);
    const ValueId stamps = offset(values.value, types::RecentLayout::kStampsOffset);
    const BlockId complete = ir().add_block("complete");
    ir().branch(Condition::eq, ir().load(8, ir().binary(Op::k_add, stamps, ir().binary(Op::k_shl, slot, 3))), stamp,
                complete, activation_->loops.back().next);
    ir().enter(complete);
    const ValueId distance = ir().binary(Op::k_mul, slot, ir().constant(layout.stride_bytes));
    const ValueId address = ir().binary(Op::k_add, offset(values.value, layout.values_offset), distance);
    write_variable(variable, load(address, type.element));
    discard(node.body);
  });
}

void Lowering::lower_unroll(const syntax::Unroll& node) {
  const int64_t count = integer(node.count).value_or(0);
  if (count > 1 && kernel_has_may_goto()) {
    const auto repeat = [&](ValueId, ValueId) { discard(node.body); };
    if (module_.makes_loops_for_unroll) {
      const ValueId end = ir().constant(count);
      return loop_from_to({.first = ir().constant(0), .end = end}, repeat);
    }
    module_.has_copies = true;
  }
  const BlockId done = ir().add_block("done");
  for (int64_t i = 0; i < count; ++i) {
    const BlockId next = ir().add_block("turn");
    activation_->loops.push_back({next, done});
    discard(node.body);
    activation_->loops.pop_back();
    ir().jump(next);
    ir().enter(next);
  }
  ir().jump(done);
  ir().enter(done);
}

void Lowering::leave_loop(bool is_break) {
  if (activation_->loops.empty()) return;
  const Loop loop = activation_->loops.back();
  go_to(is_break ? loop.done : loop.next);
}

// ---- Over a map

void Lowering::lower_for_map(StmtId id, const syntax::ForMap& node) {
  if (!ast().get<syntax::Map>(node.map)) return lower_for_recent(id, node);
  const VariableId variable = unit().fact(id).variable;
  const ScriptMapId map_id = unit().fact(node.map).map;
  const program::ScriptMap map = module_.script_map(map_id);
  if (!map.map.valid()) return;  // never used with a key
  const FunctionId callback = functions_.add_callback("for" + std::to_string(functions_.count()), 4,
                                                      [&] { write_for_callback(variable, map_id, node.body); });
  ir().call(Helper::for_each_map_elem,
            {ir().map(map.map), ir().function_address(callback), frame_address(), ir().constant(0)});
  leave_after_callback();
}

// The callback's parameters are map, key, value, frame. It returns 0 to continue, 1 to end the iteration.
void Lowering::write_for_callback(VariableId variable, ScriptMapId map, ExprId body) {
  const ValueId frame = ir().param(3);  // the first value, as Functions::finish() requires
  const ValueId scratch_base = ir().load(8, frame, kFrameScratchOffset);
  const auto write = [&] {
    const ValueId key = ir().param(1);
    const ValueId value = ir().param(2);
    const TypeId pair = unit().variables[variable].type;
    write_variable(variable, {pair, make_loop_pair(pair, map, key, value), true});
    const BlockId next = ir().add_block("next");
    const BlockId done = ir().add_block("done");
    Activation& activation = *activation_;
    std::vector<Loop> outer = std::exchange(activation.loops, std::vector<Loop>{{next, done}});
    ++activation.callback_depth;
    discard(body);
    --activation.callback_depth;
    activation.loops = std::move(outer);
    ir().jump(next);
    ir().enter(next);
    ir().ret(0);
    ir().enter(done);
    ir().ret(1);
  };
  with_callback_memory(frame, scratch_base, write);
}

// The address of the loop's variable: a tuple of key and value.
ValueId Lowering::make_loop_pair(TypeId type, ScriptMapId map_id, ValueId key, ValueId value) {
  const program::ScriptMap map = module_.script_map(map_id);
  const types::Type layout = types()[type];
  const ValueId address = zeroed_memory(layout.size_bytes, "pair");
  if (layout.members.size() != 2) return address;
  store_converted(address, load(key, map.key), layout.members[0].type);
  const ValueId at = offset(address, layout.members[1].offset_bytes());
  const bool has_copies = map.storage == program::Storage::kPercpuHash || map.storage == program::Storage::kSlotHash ||
                          types()[map.value].kind == Kind::kRecent;
  const Operand whole = has_copies ? merged_aggregation({map_id, key}) : load(value, map.value);
  store_converted(at, whole, layout.members[1].type);
  return address;
}

// Continues a `return` or exit() of the callback in the function that started the iteration.
void Lowering::leave_after_callback() {
  const ValueId left = ir().load(8, frame_address(), kFrameLeftOffset);
  when(Condition::ne, left, ir().constant(0), [&] {
    when(Condition::eq, left, ir().constant(kLeftAction), [&] { end_action(); });
    if (activation_->callback_depth == 0) ir().store(8, frame_address(), ir().constant(0), kFrameLeftOffset);
    end_function();
  });
}

// ---- Variables

Lowering::VariableStorage& Lowering::storage_of(VariableId variable) {
  std::vector<VariableStorage>& all = activation_->storage;
  if (all.size() <= variable.index) all.resize(variable.index + 1);
  VariableStorage& storage = all[variable.index];
  // An unrolled body makes a callback in each copy, and a slot belongs to one function.
  if (storage.slot.valid() && storage.owner != functions_.current()) storage = {};
  return storage;
}

// The storage, with a place.
Lowering::VariableStorage& Lowering::placed_storage(VariableId variable) {
  VariableStorage& storage = storage_of(variable);
  if (!storage.is_placed()) storage = place_variable(variable);
  return storage;
}

Lowering::VariableStorage Lowering::place_variable(VariableId variable) {
  const check::Variable& info = unit().variables[variable];
  const bool is_shared = activation_->shared_variables.contains(variable.index);
  if (is_scalar(info.type)) {
    if (is_shared) return {.frame_offset = add_frame_word()};
    return {.slot = new_slot(info.name), .owner = functions_.current()};
  }
  const auto size = round_up(std::max(types()[info.type].size_bytes, 1u), 8);
  if (!takes_stack(size)) return {.scratch_offset = reserve_scratch(size)};
  if (is_shared) return {.frame_offset = add_to_frame(size)};
  return {.slot = ir().add_slot(size, 8, info.name), .owner = functions_.current()};
}

ValueId Lowering::variable_address(VariableId variable) {
  const VariableStorage& storage = placed_storage(variable);
  if (storage.scratch_offset) return scratch_address(*storage.scratch_offset);
  if (storage.frame_offset) return offset(frame_address(), storage.frame_offset);
  CHECK(!is_scalar(unit().variables[variable].type));
  return ir().slot(storage.slot);
}

Operand Lowering::read_variable(VariableId variable) {
  const TypeId type = unit().variables[variable].type;
  if (!is_scalar(type)) return {type, variable_address(variable), true};
  if (!storage_of(variable).is_placed()) write_variable(variable, {type, ir().constant(0)});
  const VariableStorage& storage = placed_storage(variable);
  if (storage.frame_offset) return {type, ir().load(8, frame_address(), storage.frame_offset)};
  return {type, read_slot(storage.slot)};
}

void Lowering::write_variable(VariableId variable, Operand operand) {
  const TypeId type = unit().variables[variable].type;
  if (!is_scalar(type)) return store_converted(variable_address(variable), operand, type);
  const bool is_integer = types::is_integer(types()[type]);
  const ValueId value = convert(operand, type).value;
  const VariableStorage& storage = placed_storage(variable);
  if (storage.frame_offset) {
    ir().store(8, frame_address(), value, storage.frame_offset);
    // As in launder().
    if (is_integer) ir().store(1, frame_address(), value, storage.frame_offset);
  } else {
    write_slot(storage.slot, is_integer && is_in_converging_loop() ? launder(value) : value);
  }
}

void Lowering::clear_variable(VariableId variable) {
  const TypeId type = unit().variables[variable].type;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return;
  if (is_scalar(type)) return write_variable(variable, {type, ir().constant(0)});
  zero(variable_address(variable), types()[type].size_bytes);
}

// ---- Numbers that the verifier knows too well
//
// Hides from the verifier what it knows of a number, so that it finishes exploring a loop, or an action with many
// `if`s.
//
// The verifier explores a loop until it reaches a state that it has seen before. A counter with a known value, or a
// variable with other bounds in each iteration, makes each state new, until the verifier gives up at a million
// instructions. Kernels with may_goto bound the loop themselves, so nothing is lost if the number is unknown.
//
// After an `if`, the verifier knows more of what was compared, something else on each path. Where it decides a later
// comparison by that, it explores all that follows once for each path: a time that is square in the number of `if`s.

bool Lowering::has_many_branches() {
  constexpr ptrdiff_t kMany = 64;
  const auto [known, is_new] = many_branches_.try_emplace(&unit(), false);
  if (is_new) {
    const auto is_if = [&](ExprId id) { return id.index < ast().exprs.size() && ast().get<syntax::If>(id) != nullptr; };
    known->second = std::ranges::count_if(unit().exprs.ids(), is_if) >= kMany;
  }
  return known->second;
}

// The verifier tracks the value of a number that is stored to the stack as a whole. Writing one of its bytes again
// leaves it with a number of unknown value.
ValueId Lowering::launder(ValueId value) {
  ir::SlotId& slot = hidden_slots_[functions_.current()];
  if (!slot.valid()) slot = ir().add_slot(8, 8, "hidden");
  const ValueId address = ir().slot(slot);
  ir().store(8, address, value);
  ir().store(1, address, value);
  return ir().load(8, address);
}

void Lowering::launder_variables() {
  if (!kernel_has_may_goto()) return;  // the verifier must see the end of each loop itself
  const std::vector<VariableStorage> all = activation_->storage;
  for (uint32_t i = 0; i < all.size(); ++i) {
    const bool is_integer = types::is_integer(types()[unit().variables[VariableId{i}].type]);
    const bool is_here = all[i].slot.valid() && all[i].owner == functions_.current();
    if (is_integer && is_here) write_slot(all[i].slot, launder(read_slot(all[i].slot)));
  }
}

ValueId Lowering::opaque_copy(ValueId number) {
  return is_in_converging_loop() || has_many_branches() ? ir().unary(Op::k_opaque, number) : number;
}

Operand Lowering::opaque_copy(Operand operand) {
  const types::Type& type = types()[operand.type];
  if (types::is_integer(type) && type.kind != Kind::kBool) operand.value = opaque_copy(operand.value);
  return operand;
}

// ---- Variables that callbacks share with the code around them

namespace {

class SharedVariables {
 public:
  SharedVariables(const syntax::Ast& ast, const check::Unit& unit) : ast_(ast), unit_(unit) {}

  std::set<uint32_t> find() {
    for (const ExprId id : unit_.exprs.ids()) {
      const auto* unary = ast_.exprs.contains(id) ? ast_.get<syntax::Unary>(id) : nullptr;
      if (!unary || unary->op != syntax::UnaryOp::kAddressOf) continue;
      if (const VariableId variable = unit_.fact(unary->operand).variable; variable.valid())
        shared_.insert(variable.index);
    }
    for (const VariableId parameter : unit_.parameters) use(parameter);
    if (unit_.action) visit(unit_.action->predicate);
    visit(unit_.action ? unit_.action->body : unit_.function->body);
    return std::move(shared_);
  }

 private:
  void use(VariableId variable) {
    const auto [first, is_new] = first_use_.emplace(variable.index, function_);
    if (!is_new && first->second != function_) shared_.insert(variable.index);
  }

  template <class Id>
  void visit(const std::vector<Id>& list) {
    for (const Id each : list) visit(each);
  }

  void visit(ExprId expr) {
    if (!expr.valid()) return;
    if (const VariableId variable = unit_.fact(expr).variable; variable.valid()) use(variable);
    std::visit([&](const auto& node) { visit_parts(node); }, ast_[expr].node);
  }

  void visit(StmtId stmt) {
    const auto* for_map = ast_.get<syntax::ForMap>(stmt);
    const VariableId declared = unit_.fact(stmt).variable;
    if (for_map && ast_.get<syntax::Map>(for_map->map)) return visit_for_map(*for_map, declared);
    if (declared.valid()) use(declared);
    std::visit([&](const auto& node) { visit_parts(node); }, ast_[stmt].node);
  }

  // Functions are numbered: 0 is the action, others are callbacks.
  void visit_for_map(const syntax::ForMap& node, VariableId pair) {
    visit(node.map);
    const uint32_t outer = function_;
    function_ = ++callbacks_;
    if (pair.valid()) use(pair);
    visit(node.body);
    function_ = outer;
  }

  template <class... Ids>
  void visit_all(const Ids&... ids) {
    (visit(ids), ...);
  }

  template <class Node>
  void visit_parts(const Node&) {}  // a leaf
  void visit_parts(const syntax::Index& node) { visit_all(node.base, node.indices); }
  void visit_parts(const syntax::Call& node) { visit(node.arguments); }
  void visit_parts(const syntax::Unary& node) { visit(node.operand); }
  void visit_parts(const syntax::Cast& node) { visit(node.operand); }
  void visit_parts(const syntax::Comptime& node) { visit(node.operand); }
  void visit_parts(const syntax::Binary& node) { visit_all(node.left, node.right); }
  void visit_parts(const syntax::Ternary& node) { visit_all(node.condition, node.then_value, node.else_value); }
  void visit_parts(const syntax::Access& node) { visit(node.base); }
  void visit_parts(const syntax::TupleAccess& node) { visit(node.base); }
  void visit_parts(const syntax::Tuple& node) { visit(node.elements); }
  void visit_parts(const syntax::Record& node) { visit(node.values); }
  void visit_parts(const syntax::Block& node) { visit_all(node.statements, node.value); }
  void visit_parts(const syntax::If& node) { visit_all(node.condition, node.then_branch, node.else_branch); }
  void visit_parts(const syntax::ExprStmt& node) { visit(node.value); }
  void visit_parts(const syntax::Let& node) { visit(node.value); }
  void visit_parts(const syntax::Discard& node) { visit(node.value); }
  void visit_parts(const syntax::Return& node) { visit(node.value); }
  void visit_parts(const syntax::Assign& node) { visit_all(node.target, node.value); }
  void visit_parts(const syntax::While& node) { visit_all(node.condition, node.body); }
  void visit_parts(const syntax::Unroll& node) { visit_all(node.count, node.body); }
  void visit_parts(const syntax::ForMap& node) { visit_all(node.map, node.body); }
  void visit_parts(const syntax::ForRange& node) { visit_all(node.begin, node.end, node.body); }

  const syntax::Ast& ast_;
  const check::Unit& unit_;
  uint32_t function_ = 0;
  uint32_t callbacks_ = 0;
  std::map<uint32_t, uint32_t> first_use_;  // from a variable to the first function that uses it
  std::set<uint32_t> shared_;
};

}  // namespace

std::set<uint32_t> find_shared_variables(const syntax::Ast& ast, const check::Unit& unit) {
  return SharedVariables(ast, unit).find();
}

}  // namespace espy::lower
