#include <fmt/format.h>

#include "check/check_passes.h"
#include "check/checker.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

// ---- Statements

void Checker::check_statement(StmtId id) {
  std::visit([&](const auto& node) { visit(id, node); }, ast_[id].node);
}

void Checker::visit(StmtId, const ExprStmt& node) {
  if (!node.value) return;
  fact(node.value).is_statement = true;
  const TypeId type_id = check_expr(node.value);
  const ExprNode& what = ast_[node.value].node;
  const bool is_call = std::holds_alternative<Call>(what);
  const bool has_effect = is_call || std::holds_alternative<Block>(what) || std::holds_alternative<If>(what) ||
                          std::holds_alternative<ErrorExpr>(what) || std::holds_alternative<Comptime>(what) ||
                          std::holds_alternative<Unary>(what) || std::holds_alternative<Ternary>(what);
  if (!type_id || type_of(type_id).kind == Kind::kVoid) return;
  if (types::is_aggregation(type_of(type_id)) && is_call) {
    error("aggregation-not-assigned", span_of(node.value), "an aggregation must be assigned to a map",
          "write `@ = " + std::string(request_.sources.text(span_of(node.value))) + "`");
    return;
  }
  if (!has_effect)
    warning("unused-value", span_of(node.value), "this value is not used", "write `_ = ...` to discard it");
}

void Checker::visit(StmtId, const Assign& node) {
  if (!node.target || !node.value) return;
  if (ast_.get<syntax::Variable>(node.target)) return assign_variable(node.target, node);
  const auto* index = ast_.get<Index>(node.target);
  if (ast_.get<Map>(node.target) || (index && ast_.get<Map>(index->base))) return assign_map(node.target, node);
  check_expr(node.value);
  check_expr(node.target);
  if (!ast_.get<ErrorExpr>(node.target))
    error("not-assignable", span_of(node.target), "this cannot be assigned to",
          "only variables and maps can be assigned to");
}

void Checker::visit(StmtId id, const Let& node) {
  TypeId declared = node.type ? named_type(node.type) : TypeId{};
  if (node.value) read_value(node.value);
  StmtFact& out = unit_->stmts[id];
  if (node.name.starts_with('@') || node.name.empty()) return;
  out.variable = declare_variable({DeclarationSite::Kind::kStatement, id.index}, node.name, node.name_span, true);
  VariableState& state = variable_state(out.variable);
  if (declared) {
    if (!state.slot.is_refined) set_variable_type(out.variable, declared);
    state.slot.is_declared = true;
  }
  if (node.value) {
    add_to_variable(out.variable, given(node.value), span_of(node.value), node.value);
    variable_state(out.variable).is_assigned = true;
  } else {
    // Values that are held by reference (arrays and the like) are initialized with zeros; only `let` can do so.
    const TypeId type = variable_type(out.variable);
    state.is_assigned = declared && types::is_by_reference(type_of(type));
    state.is_let = true;
  }
  out.type = variable_type(out.variable);
}

void Checker::visit(StmtId, const Discard& node) {
  if (node.value) check_value(node.value);
}

void Checker::check_loop_body(ExprId body) {
  ++loop_depth_;
  if (body) check_expr(body);
  --loop_depth_;
}

void Checker::visit(StmtId, const While& node) {
  if (node.condition) check_condition(node.condition);
  check_loop_body(node.body);
}

void Checker::visit(StmtId, const Unroll& node) {
  constexpr int64_t kMaxCopies = 10'000;  // of the innermost body
  const int64_t copies_before = copies_;
  if (node.count) {
    check_integer(node.count);
    const auto count = integer(node.count);
    if (!count && type(node.count))
      error("not-constant", span_of(node.count), "`unroll` takes a constant");
    else if (count && (*count < 1 || *count > 100))
      error("out-of-range", span_of(node.count), "`unroll` repeats 1 to 100 times, not " + std::to_string(*count));
    else if (count && (copies_ *= *count) > kMaxCopies)
      error("too-long", span_of(node.count),
            fmt::format("nested `unroll`s repeat this {} times, {} at most", copies_, kMaxCopies),
            "use `for ($i : 0..N)`");
  }
  if (copies_ <= kMaxCopies) check_loop_body(node.body);
  copies_ = copies_before;
}

// `type` of the variable is invalid if it is not known.
template <class For>
void Checker::check_for_body(StmtId id, const For& node, TypeId type, bool iterates_aggregation) {
  enter_scope();
  const VariableId variable =
      declare_variable({DeclarationSite::Kind::kStatement, id.index}, node.variable, node.variable_span, true);
  if (type) set_variable_type(variable, type);
  if (iterates_aggregation) variable_state(variable).iterates_aggregation = true;
  variable_state(variable).is_assigned = true;
  unit_->stmts[id] = {variable, variable_type(variable), {}};
  check_loop_body(node.body);
  leave_scope();
}

// The values of one element of a map of recent().
void Checker::check_for_element(StmtId id, const ForMap& node) {
  const MapState* map = assigned_map(node.map);
  const TypeId held = map ? map->value.type : TypeId{};
  const bool is_recent = held && type_of(held).kind == Kind::kRecent;
  if (!is_recent)
    error("not-a-map", span_of(node.map), "`for` iterates over a map, an element of `recent`, or a range",
          "write `for ($i : 0..10)`");
  fact(node.map).type = held;
  check_for_body(id, node, is_recent ? type_of(held).element : types_.int64());
}

void Checker::visit(StmtId id, const ForMap& node) {
  if (ast_.get<Index>(node.map)) return check_for_element(id, node);
  MapState* map = node.map ? map_argument(node.map, false) : nullptr;
  if (!map) {
    if (node.map && !ast_.get<ErrorExpr>(node.map))
      error("not-a-map", span_of(node.map), "`for` iterates over a map or a range", "write `for ($i : 0..10)`");
    return check_for_body(id, node, {});
  }
  if (map->key.empty() && map->scalar_span.valid()) {
    error_with_note("map-has-no-key", span_of(node.map), "`" + map_name(*map) + "` has no keys to iterate over", {},
                    {map->scalar_span, "used without a key here"});
  } else if (!kernel_.has(kernel::Feature::kForEachMapElem)) {
    error("kernel-lacks", span_of(node.map),
          kernel::missing_feature(kernel::Feature::kForEachMapElem, "`for` over a map"));
  }
  const TypeId value = map_value_type(*map);
  const TypeId reduced = reduced_type(types_, value);
  TypeId key = map_key_type(*map);
  if (type_of(key).kind == Kind::kVoid) key = types_.int64();
  check_for_body(id, node, types_.tuple({key, reduced ? reduced : value}), reduced.valid());
}

void Checker::visit(StmtId id, const ForRange& node) {
  if (node.begin) check_integer(node.begin);
  if (node.end) check_integer(node.end);
  check_for_body(id, node, types_.int64());
}

void Checker::visit(StmtId id, const Break&) {
  if (!is_in_loop()) error("not-in-loop", ast_[id].span, "`break` outside a loop");
}

void Checker::visit(StmtId id, const Continue&) {
  if (!is_in_loop()) error("not-in-loop", ast_[id].span, "`continue` outside a loop");
}

void Checker::visit(StmtId id, const Return& node) {
  const TypeId returned = node.value ? read_value(node.value) : TypeId{};
  if (unit().context.returns_value && returned && !is_int_like(type_of(returned)))
    error("type-mismatch", span_of(node.value), "an integer must be returned here, not " + show(returned));
  const TypeId wanted = unit().result;
  if (!unit().function || !wanted) return;
  const std::string& name = unit().function->name;
  const bool wants_value = type_of(wanted).kind != Kind::kVoid;
  if (wants_value && !node.value) {
    error("no-value", ast_[id].span, "`" + name + "` returns " + show(wanted));
  } else if (returned) {
    Slot slot = Slot::of_type(wanted);
    if (!wants_value || !slot.add(types_, given(node.value)))
      error("type-mismatch", span_of(node.value), "`" + name + "` returns " + show(wanted) + ", not " + show(returned));
    else if (slot.loses_sign)
      warn_of_other_sign("what `" + name + "` returns", wanted, returned, span_of(node.value));
  }
}

// ---- Assignments

TypeId Checker::combined_type(const Assign& node, TypeId old) {
  const TypeId amount = type(node.value);
  const TypeId found = arithmetic_type(*node.op, old, amount, {}, node.value);
  if (!found)
    error("bad-operands", span_of(node.value),
          std::string("`") + spelling(*node.op) + "=` does not work on " + show(old) + " and " + show(amount));
  return found;
}

void Checker::assign_variable(ExprId target, const Assign& node) {
  const std::string& name = ast_.get<syntax::Variable>(target)->name;
  const Span span = span_of(node.value);
  TypeId assigned = read_value(node.value);
  if (assigned && types::is_aggregation(type_of(assigned))) {
    error("aggregation-not-assigned", span, "an aggregation can only be assigned to a map");
    assigned = {};
  }
  VariableId id = find_variable(name);
  if (!id) {
    if (node.op) error("unset-variable", span_of(target), "`" + name + "` is used before anything is assigned to it");
    id = declare_target(target, name);
  }
  if (use_func_as_symbol(node.value, variable_type(id))) assigned = type(node.value);
  if (node.op && assigned) {
    const TypeId old = variable_type(id);
    add_to_variable(id, {old ? combined_type(node, old) : assigned}, span);
  } else if (assigned) {
    add_to_variable(id, given(node.value), span, node.value);
  }
  variable_state(id).is_assigned = true;
  fact(target).variable = id;
  fact(target).type = variable_type(id);
}

// False, with an error, if `node.value` is a whole map with keys.
bool Checker::is_single_value(const Assign& node) {
  const auto* whole = ast_.get<Map>(node.value);
  if (!whole || find_or_add_map(whole->name, span_of(node.value)).key.empty()) return true;
  error("whole-map", span_of(node.value), "a whole map cannot be assigned to another one",
        "name an element: `" + whole->name + "[KEY]`");
  return false;
}

void Checker::assign_map(ExprId target, const Assign& node) {
  const Span span = span_of(node.value);
  check_value(node.value);
  MapState* state = assigned_map(target);
  if (!state) return;
  refuse_unknown_names(*state, target);
  const spec::Builtin* builtin = fact(node.value).builtin;
  const bool is_aggregation = builtin && ast_.get<Call>(node.value) && builtin->kind == spec::BuiltinKind::kAggregation;
  if (!is_single_value(node)) return;
  if (is_aggregation && node.op) {
    error("bad-operands", span, "an aggregation takes `=`, not an operator");
    return;
  }
  if (!is_aggregation) read_aggregation(node.value);
  const TypeId held = state->value.type;
  if (!is_aggregation && held && types::is_aggregation(type_of(held))) {
    error_with_note("type-mismatch", span,
                    "`" + map_name(*state) + "` holds " + show(held) + ", and cannot hold a plain value", {},
                    {state->value_span, "first assigned here"});
    return;
  }
  if (node.op && type(node.value)) {
    const TypeId result = combined_type(node, map_value_type(*state));
    if (!result) return;
    add_type_to_map(*state, {result}, span);
  } else {
    add_to_map(*state, node.value, span);
    // An aggregation has the sign of the map's values, which other assignments decide as well.
    if (is_aggregation) fact(node.value).type = state->value.type;
  }
  fact(target).type = state->value.type;
}

// ---- Blocks, and choices between them

TypeId Checker::visit(ExprId id, const Block& node) {
  enter_scope();
  bool ended = false;
  for (size_t i = 0; i < node.statements.size(); ++i) {
    const StmtId statement = node.statements[i];
    if (ended) {
      warning("unreachable", ast_[statement].span, "this is never reached");
      ended = false;
    }
    unit_->stmts[statement].hoisted.clear();
    for (const ExprId target : variables_to_hoist(ast_, node, i)) {
      const std::string& name = ast_.get<syntax::Variable>(target)->name;
      if (!find_variable(name)) unit_->stmts[statement].hoisted.push_back(declare_target(target, name));
    }
    check_statement(statement);
    ended = leaves(statement);
  }
  TypeId found = types_.void_type();
  if (node.value) {
    if (ended) warning("unreachable", span_of(node.value), "this is never reached");
    check_expr(node.value);
    read_aggregation(node.value);
    found = type(node.value);
    // The block that a call of a macro expands to may be a constant.
    if (node.statements.empty()) fact(id).constant = constant(node.value);
  }
  leave_block();
  return found;
}

// True if nothing after the statement is reached.
bool Checker::leaves(StmtId id) {
  const StmtNode& what = ast_[id].node;
  if (std::holds_alternative<Break>(what) || std::holds_alternative<Continue>(what) ||
      std::holds_alternative<Return>(what))
    return true;
  const auto* statement = std::get_if<ExprStmt>(&what);
  return statement != nullptr && leaves(statement->value);
}

bool Checker::leaves(ExprId id) {
  if (!id) return false;
  const spec::Builtin* builtin = fact(id).builtin;
  if (ast_.get<Call>(id)) return builtin != nullptr && builtin->ends_action;
  if (const auto* block = ast_.get<Block>(id)) return !block->statements.empty() && leaves(block->statements.back());
  const auto* branches = ast_.get<If>(id);
  return branches != nullptr && !fact(id).branch_taken && leaves(branches->then_branch) &&
         leaves(branches->else_branch);
}

// Whether the condition is true, if that is known.
std::optional<bool> Checker::known_branch(ExprId id, ExprId condition) {
  check_condition(condition);
  const auto known = integer(condition);
  return fact(id).branch_taken = known ? std::optional(*known != 0) : std::nullopt;
}

void Checker::leave_out(ExprId branch) {
  if (!branch) return;
  has_left_out_ = true;
  if (checks_all_branches_) check_expr(branch);
}

namespace {

// Whether finding out the type of the expression has no other effect.
bool is_plain(const Ast& ast, ExprId id) {
  if (const auto* block = ast.get<Block>(id))
    return block->statements.empty() && block->value && is_plain(ast, block->value);
  bool out = true;
  walk(ast, id, [&](ExprId each) {
    const ExprNode& node = ast[each].node;
    const auto* unary = std::get_if<Unary>(&node);
    out &= std::holds_alternative<IntegerLiteral>(node) || std::holds_alternative<BoolLiteral>(node) ||
           std::holds_alternative<syntax::Variable>(node) || std::holds_alternative<Name>(node) ||
           std::holds_alternative<Positional>(node) || std::holds_alternative<PositionalCount>(node) ||
           std::holds_alternative<Cast>(node) || std::holds_alternative<Binary>(node) ||
           std::holds_alternative<Ternary>(node) || (unary && unary->op < UnaryOp::kPreIncrement);
  });
  return out;
}

}  // namespace

// If a branch that is left out is an integer, calls `look` with its type. Skips branches whose check has effects.
// `look` may ask for the facts of the branch.
void Checker::with_left_out(ExprId branch, const std::function<void(TypeId)>& look) {
  if (!branch || !is_plain(ast_, branch)) return;
  is_muted_ = true;
  const TypeId type = check_expr(branch);
  is_muted_ = false;
  if (type && types::is_integer(type_of(type))) look(type);
  walk(ast_, branch, [&](ExprId each) { fact(each) = {}; });
}

TypeId Checker::visit(ExprId id, const If& node) {
  if (const auto known = known_branch(id, node.condition)) {
    const ExprId taken = *known ? node.then_branch : node.else_branch;
    const ExprId left_out = *known ? node.else_branch : node.then_branch;
    if (!node.is_comptime) leave_out(left_out);
    if (!taken) return types_.void_type();
    TypeId out = check_expr(taken);
    if (node.is_comptime || !out || !types::is_integer(type_of(out))) return out;
    with_left_out(left_out, [&](TypeId other) { out = unify(types_, out, other).value_or(out); });
    return out;
  }
  if (node.is_comptime) {
    if (type(node.condition)) error("not-constant", span_of(node.condition), "this is not known at compile time");
    return {};
  }
  const TypeId a = check_expr(node.then_branch);
  const TypeId b = node.else_branch ? check_expr(node.else_branch) : types_.void_type();
  const TypeId void_type = types_.void_type();
  if (!a || !b) return {};
  if (a == void_type || b == void_type) return void_type;
  const auto both = unify(types_, a, b);
  return both ? *both : void_type;
}

TypeId Checker::visit(ExprId id, const Ternary& node) {
  const auto known = known_branch(id, node.condition);
  const ExprId then_value = node.then_value ? node.then_value : node.condition;
  const auto side = [&](ExprId value) {
    if (value == node.condition) return;
    check_expr(value);
    read_aggregation(value);
  };
  if (known) {
    const ExprId taken = *known ? then_value : node.else_value;
    const ExprId left_out = *known ? node.else_value : then_value;
    if (left_out != node.condition) leave_out(left_out);
    side(taken);
    fact(id).constant = constant(taken);
    TypeId out = type(taken);
    if (!out || !types::is_integer(type_of(out))) return out;
    with_left_out(left_out, [&](TypeId) { out = common_type(id, taken, left_out); });
    return out;
  }
  side(then_value);
  side(node.else_value);
  return common_type(id, then_value, node.else_value);
}

TypeId Checker::common_type(ExprId id, ExprId a, ExprId b) {
  const TypeId left = type(a);
  const TypeId right = type(b);
  if (!left || !right) return {};
  const auto side = [&](ExprId each) {
    Given out = given(each);
    out.is_literal = is_number_literal(each);
    return out;
  };
  Slot slot;
  if (slot.add(types_, side(a)) && slot.add(types_, side(b))) return slot.type;
  if (type_of(left).kind == Kind::kVoid && type_of(right).kind == Kind::kVoid) return left;
  error("type-mismatch", span_of(id),
        "the two sides are " + show(left) + " and " + show(right) + ", which have no common type");
  return {};
}

}  // namespace espy::check
