// The variables of an action, and the frame in which callbacks share some of them.
#include "lower/unit.h"

namespace espy::lower {

ValueId UnitLowering::frame() {
  if (is_in_callback()) return callback_frame_;
  return ir().slot(frame_slot_);
}

uint32_t UnitLowering::add_frame_word() {
  const uint32_t at = frame_bytes_;
  frame_bytes_ += 8;
  return at;
}

ir::SlotId UnitLowering::new_slot(std::string name) { return ir().add_variable(std::move(name)); }

UnitLowering::Home& UnitLowering::home(VariableId variable) {
  std::vector<Home>& homes = activation().homes;
  if (homes.size() <= variable.index) homes.resize(variable.index + 1);
  Home& home = homes[variable.index];
  // In an unrolled body a callback is made each time, and a slot is of one of them.
  if (home.slot.valid() && home.owner != function_id_) home = {};
  return home;
}

// Makes a home at the first mention. A declaration in a loop or an unrolled body comes by several times; it keeps its
// home.
UnitLowering::Home& UnitLowering::declare(VariableId variable) {
  Home& home = this->home(variable);
  const check::Variable& info = unit_->variables[variable];
  const types::Type& type = types()[info.type];
  const bool is_shared = activation().shared_variables.contains(variable.index);
  home.owner = function_id_;
  const bool is_new = !home.slot.valid() && !home.address.valid() && !home.frame_offset;
  if (is_new && is_shared) home.frame_offset = add_frame_word();
  if (types::is_by_reference(type)) {
    // A home made in another function, or in a block that does not dominate this one, is made anew.
    // A callback's stack is gone before its caller's frame is, so no address of it may be there.
    const bool must_outlive = home.frame_offset && is_in_callback();
    home.address = must_outlive ? scratch(type.size_bytes) : memory(type.size_bytes, info.name);
    if (home.frame_offset) {
      ir().store(8, frame(), home.address, home.frame_offset);
    } else {
      if (!home.slot.valid() || is_new) home.slot = new_slot(info.name);
      write_slot(home.slot, home.address);
    }
  } else if (is_new && !is_shared) {
    home.slot = new_slot(info.name);
  }
  return home;
}

ValueId UnitLowering::variable_address(VariableId variable) {
  const types::Type& type = types()[unit_->variables[variable].type];
  Home& home = this->home(variable);
  if (!home.slot.valid() && !home.frame_offset) declare(variable);
  Home& made = this->home(variable);
  if (types::is_by_reference(type)) {
    if (made.frame_offset) return ir().load(8, frame(), made.frame_offset);
    return read_slot(made.slot);
  }
  CHECK(made.frame_offset);
  return offset(frame(), made.frame_offset);
}

Operand UnitLowering::read_variable(VariableId variable) {
  const TypeId type = unit_->variables[variable].type;
  if (types::is_by_reference(types()[type])) return {type, variable_address(variable), true};
  Home& home = this->home(variable);
  if (!home.slot.valid() && !home.frame_offset) {
    declare(variable);
    write_variable(variable, {type, ir().constant(0)});
  }
  const Home& made = this->home(variable);
  if (made.frame_offset) return {type, ir().load(8, frame(), made.frame_offset)};
  return {type, read_slot(made.slot)};
}

void UnitLowering::write_variable(VariableId variable, Operand operand) {
  const TypeId type = unit_->variables[variable].type;
  Home& home = this->home(variable);
  if (!home.slot.valid() && !home.frame_offset) declare(variable);
  if (types::is_by_reference(types()[type])) return store_converted(variable_address(variable), operand, type);
  const ValueId value = convert(operand, type).value;
  const Home& made = this->home(variable);
  if (made.frame_offset) {
    ir().store(8, frame(), value, made.frame_offset);
    // The kernel's verifier knows a number that lies whole on the stack, and would walk a loop that counts once for
    // each count. One byte of it written again, and it knows only that there is a number.
    if (types::is_integer(types()[type])) ir().store(1, frame(), value, made.frame_offset);
  } else {
    // In a loop, a number of which only the type is known is less to follow than one with bounds.
    const bool is_hidden = is_walked_loop() && types::is_integer(types()[type]);
    write_slot(made.slot, is_hidden ? launder(value) : value);
  }
}

// ---- Which variables must be in the frame: those that are named in the body of a `for` over a map, which is a
// function of its own, and those whose address is taken.

void UnitLowering::find_shared_variables(Activation& activation) {
  const syntax::Ast& tree = ast();
  const check::Unit& unit = *activation.unit;
  for (const ExprId id : tree.exprs.ids()) {
    const auto* address_of = tree.get<syntax::Unary>(id);
    if (!address_of || address_of->op != syntax::UnaryOp::kAddressOf) continue;
    if (const VariableId variable = unit.fact(address_of->operand).variable; variable.valid())
      activation.shared_variables.insert(variable.index);
  }
  const ExprId body = unit.action ? unit.action->body : unit.function->body;
  for (const VariableId parameter : unit.parameters) note_use(activation, parameter, 0);
  if (unit.action && unit.action->predicate.valid()) mark_shared(activation, unit.action->predicate, 0);
  mark_shared(activation, body, 0);
}

// `function`: 0 is the action itself, others are its callbacks.
void UnitLowering::note_use(Activation& activation, VariableId variable, uint32_t function) {
  const auto [first, is_new] = activation.used_in.emplace(variable.index, function);
  if (!is_new && first->second != function) activation.shared_variables.insert(variable.index);
}

void UnitLowering::mark_shared(Activation& activation, ExprId expr, uint32_t function) {
  if (!expr.valid()) return;
  const VariableId variable = activation.unit->fact(expr).variable;
  if (variable.valid()) note_use(activation, variable, function);
  const auto visit = [&](ExprId id) { mark_shared(activation, id, function); };
  std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, syntax::Index>) {
          visit(node.base);
          for (const ExprId each : node.indices) visit(each);
        } else if constexpr (std::is_same_v<Node, syntax::Call>) {
          for (const ExprId each : node.arguments) visit(each);
        } else if constexpr (std::is_same_v<Node, syntax::Unary> || std::is_same_v<Node, syntax::Cast> ||
                             std::is_same_v<Node, syntax::Comptime>) {
          visit(node.operand);
        } else if constexpr (std::is_same_v<Node, syntax::Binary>) {
          visit(node.left), visit(node.right);
        } else if constexpr (std::is_same_v<Node, syntax::Ternary>) {
          visit(node.condition), visit(node.then_value), visit(node.else_value);
        } else if constexpr (std::is_same_v<Node, syntax::Access> || std::is_same_v<Node, syntax::TupleAccess>) {
          visit(node.base);
        } else if constexpr (std::is_same_v<Node, syntax::Tuple>) {
          for (const ExprId each : node.elements) visit(each);
        } else if constexpr (std::is_same_v<Node, syntax::Record>) {
          for (const ExprId each : node.values) visit(each);
        } else if constexpr (std::is_same_v<Node, syntax::Block>) {
          for (const StmtId each : node.statements) mark_shared(activation, each, function);
          visit(node.value);
        } else if constexpr (std::is_same_v<Node, syntax::If>) {
          visit(node.condition), visit(node.then_branch), visit(node.else_branch);
        }
      },
      ast()[expr].node);
}

void UnitLowering::mark_shared(Activation& activation, StmtId stmt, uint32_t function) {
  const auto visit = [&](ExprId id) { mark_shared(activation, id, function); };
  const VariableId declared = activation.unit->fact(stmt).variable;
  if (declared.valid() && !ast().get<syntax::ForMap>(stmt)) note_use(activation, declared, function);
  std::visit(
      [&](const auto& node) {
        using Node = std::decay_t<decltype(node)>;
        if constexpr (std::is_same_v<Node, syntax::ExprStmt> || std::is_same_v<Node, syntax::Let> ||
                      std::is_same_v<Node, syntax::Discard> || std::is_same_v<Node, syntax::Return>) {
          visit(node.value);
        } else if constexpr (std::is_same_v<Node, syntax::Assign>) {
          visit(node.target), visit(node.value);
        } else if constexpr (std::is_same_v<Node, syntax::While>) {
          visit(node.condition), visit(node.body);
        } else if constexpr (std::is_same_v<Node, syntax::Unroll>) {
          visit(node.count), visit(node.body);
        } else if constexpr (std::is_same_v<Node, syntax::ForRange>) {
          visit(node.begin), visit(node.end), visit(node.body);
        } else if constexpr (std::is_same_v<Node, syntax::ForMap>) {
          visit(node.map);
          const uint32_t callback = ++activation.callbacks;
          if (const VariableId pair = activation.unit->fact(stmt).variable; pair.valid())
            note_use(activation, pair, callback);
          mark_shared(activation, node.body, callback);
        }
      },
      ast()[stmt].node);
}

}  // namespace espy::lower
