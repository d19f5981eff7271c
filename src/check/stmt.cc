// Statements.
#include "check/analyzer.h"

namespace espy::check {

using source::Severity;
using types::Kind;
using namespace syntax;

void Analyzer::statement(StmtId id) {
  std::visit([&](const auto& node) { visit(id, node); }, ast()[id].node);
}

void Analyzer::condition(ExprId id) {
  value(id);
  read_aggregation(id);
  const TypeId type_id = type(id);
  if (type_id && !is_truthy(type_of(type_id)))
    error("not-a-condition", span(id), "a condition must be an integer, a pointer or a string, not " + show(type_id));
}

void Analyzer::visit(StmtId, const ExprStmt& node) {
  if (!node.value) return;
  const TypeId type_id = expr(node.value);
  const ExprNode& what = ast()[node.value].node;
  const bool is_call = std::holds_alternative<Call>(what);
  const bool has_effect = is_call || std::holds_alternative<Block>(what) || std::holds_alternative<If>(what) ||
                          std::holds_alternative<ErrorExpr>(what) || std::holds_alternative<Comptime>(what) ||
                          std::holds_alternative<Unary>(what) || std::holds_alternative<Ternary>(what);
  if (!type_id || type_of(type_id).kind == Kind::kVoid) return;
  if (types::is_aggregation(type_of(type_id)) && is_call) {
    error("aggregation-not-assigned", span(node.value), "an aggregation must be assigned to a map",
          "write `@ = " + std::string(request_.sources.text(span(node.value))) + "`");
    return;
  }
  if (!has_effect)
    warning("unused-value", span(node.value), "this value is not used", "write `_ = ...` if that is meant");
}

void Analyzer::visit(StmtId id, const Assign& node) {
  if (!node.target || !node.value) return;
  const Span at = ast()[id].span;
  if (ast().get<syntax::Variable>(node.target)) return assign_variable(node.target, node, at);
  const auto* index = ast().get<Index>(node.target);
  if (ast().get<Map>(node.target) || (index && ast().get<Map>(index->base))) return assign_map(node.target, node);
  expr(node.value);
  expr(node.target);
  if (!ast().get<ErrorExpr>(node.target))
    error("not-assignable", span(node.target), "this cannot be assigned to",
          "only variables and maps can be assigned to");
}

void Analyzer::assign_variable(ExprId target, const Assign& node, Span) {
  const std::string& name = ast().get<syntax::Variable>(target)->name;
  value(node.value);
  read_aggregation(node.value);
  TypeId new_type = type(node.value);
  Constant known = constant(node.value);
  bool literal = is_literal(node.value);
  if (new_type && types::is_aggregation(type_of(new_type))) {
    error("aggregation-not-assigned", span(node.value), "an aggregation can only be assigned to a map");
    new_type = {};
  }
  VariableId id = find_variable(name);
  if (!id) {
    if (node.op) error("unset-variable", span(target), "`" + name + "` is used before anything is assigned to it");
    id = declare_at(target, name);
  }
  if (node.op && new_type) {
    const TypeId old = unit_->variables[id].type;
    if (old) new_type = binary_type(*node.op, old, new_type, {}, node.value);
    known = {};
    literal = false;
    if (!new_type)
      error("bad-operands", span(node.value),
            std::string("`") + spelling(*node.op) + "=` does not work on " + show(old) + " and " +
                show(type(node.value)));
  }
  add_to_variable(id, new_type, known, literal, span(node.value));
  VariableState& state = variables_[unit_index_][id.index];
  state.is_assigned = true;
  fact(target).variable = id;
  fact(target).type = unit_->variables[id].type;
}

void Analyzer::assign_map(ExprId target, const Assign& node) {
  value(node.value);
  MapState* state = map_target(target);
  if (!state) return;
  refuse_unknown_names(*state, target);
  const auto* call = ast().get<Call>(node.value);
  const bool is_fold =
      fact(node.value).builtin && call && fact(node.value).builtin->kind == spec::BuiltinKind::kAggregation;
  if (const auto* whole = ast().get<Map>(node.value)) {
    const MapState& from = map_state(whole->name, span(node.value));
    if (!from.key.empty()) {
      error("whole-map", span(node.value), "a whole map cannot be assigned to another one",
            "name an element: `" + whole->name + "[KEY]`");
      return;
    }
  }
  if (is_fold && node.op) {
    error("bad-operands", span(node.value), "an aggregation takes `=`, not an operator");
    return;
  }
  if (!is_fold) read_aggregation(node.value);
  const TypeId held = state->value.type;
  if (!is_fold && held && types::is_aggregation(type_of(held))) {
    auto* said =
        report(Severity::kError, "type-mismatch", span(node.value),
               "`" + checked_.maps[state->id].name + "` holds " + show(held) + ", and cannot hold a plain value", {});
    note(said, state->value_span, "first assigned here");
    return;
  }
  if (node.op && type(node.value)) {
    const TypeId old = held ? held : types().int64();
    const TypeId sum = binary_type(*node.op, old, type(node.value), {}, node.value);
    if (!sum) {
      error("bad-operands", span(node.value),
            std::string("`") + spelling(*node.op) + "=` does not work on " + show(old) + " and " +
                show(type(node.value)));
      return;
    }
    add_type_to_map(*state, sum, {}, false, span(node.value));
  } else {
    add_to_map(*state, node.value, span(node.value));
  }
  fact(target).type = state->value.type;
}

void Analyzer::visit(StmtId id, const Let& node) {
  TypeId declared = node.type ? type_name(node.type) : TypeId{};
  if (node.value) value(node.value), read_aggregation(node.value);
  StmtFact& out = unit_->stmts[id];
  if (node.name.starts_with('@') || node.name.empty()) return;
  out.variable = declare((uint64_t{2} << 32) | id.index, node.name, node.name_span, true);
  VariableState& state = variables_[unit_index_][out.variable.index];
  if (declared) {
    if (!state.slot.is_refined) set_variable_type(out.variable, declared);
    state.slot.is_declared = true;
  }
  if (node.value) {
    add_to_variable(out.variable, type(node.value), constant(node.value), is_literal(node.value), span(node.value));
    variables_[unit_index_][out.variable.index].is_assigned = true;
  } else {
    // Arrays and the like are as good as assigned: `let` fills them with zeros, and there is no other way to.
    const TypeId type = unit_->variables[out.variable].type;
    variables_[unit_index_][out.variable.index].is_assigned = declared && types::is_by_reference(type_of(type));
  }
  out.type = unit_->variables[out.variable].type;
}

void Analyzer::visit(StmtId, const Discard& node) {
  if (node.value) value(node.value);
}

void Analyzer::loop_body(ExprId body) {
  ++loop_depth_;
  if (body) expr(body);
  --loop_depth_;
}

void Analyzer::visit(StmtId, const While& node) {
  if (node.condition) condition(node.condition);
  loop_body(node.body);
}

void Analyzer::visit(StmtId, const Unroll& node) {
  if (node.count) {
    number(node.count);
    const auto count = integer(node.count);
    if (!count && type(node.count))
      error("not-constant", span(node.count), "`unroll` wants a constant");
    else if (count && (*count < 1 || *count > 100))
      error("out-of-range", span(node.count), "`unroll` repeats 1 to 100 times, not " + std::to_string(*count));
  }
  loop_body(node.body);
}

void Analyzer::visit(StmtId id, const ForMap& node) {
  MapState* map = node.map ? map_argument(node.map, false) : nullptr;
  if (!map) {
    if (node.map && !ast().get<ErrorExpr>(node.map))
      error("not-a-map", span(node.map), "`for` goes over a map or a range", "write `for ($i : 0..10)`");
  } else if (map->key.empty() && map->scalar_span.valid()) {
    auto* said = report(Severity::kError, "map-has-no-key", span(node.map),
                        "`" + checked_.maps[map->id].name + "` has no keys to go over", {});
    note(said, map->scalar_span, "used without a key here");
  }
  scopes_.emplace_back();
  StmtFact& out = unit_->stmts[id];
  out.variable = declare((uint64_t{2} << 32) | id.index, node.variable, node.variable_span, true);
  if (map) {
    TypeId value_type = map->value.type ? map->value.type : types().int64();
    if (const TypeId reduced = reduced_type(types(), value_type)) {
      value_type = reduced;
      over_aggregations_.emplace(unit_index_, out.variable);
    }
    TypeId key = key_type(*map);
    if (type_of(key).kind == Kind::kVoid) key = types().int64();
    set_variable_type(out.variable, types().tuple({key, value_type}));
  }
  variables_[unit_index_][out.variable.index].is_assigned = true;
  unit_->stmts[id].type = unit_->variables[out.variable].type;
  loop_body(node.body);
  scopes_.pop_back();
}

void Analyzer::visit(StmtId id, const ForRange& node) {
  if (node.begin) number(node.begin);
  if (node.end) number(node.end);
  scopes_.emplace_back();
  const VariableId variable = declare((uint64_t{2} << 32) | id.index, node.variable, node.variable_span, true);
  set_variable_type(variable, types().int64());
  variables_[unit_index_][variable.index].is_assigned = true;
  unit_->stmts[id] = {variable, types().int64()};
  loop_body(node.body);
  scopes_.pop_back();
}

void Analyzer::visit(StmtId id, const Break&) {
  if (loop_depth_ == 0) error("not-in-loop", ast()[id].span, "`break` stands in no loop");
}

void Analyzer::visit(StmtId id, const Continue&) {
  if (loop_depth_ == 0) error("not-in-loop", ast()[id].span, "`continue` stands in no loop");
}

void Analyzer::visit(StmtId id, const Return& node) {
  if (node.value) value(node.value), read_aggregation(node.value);
  if (unit_->context.returns_value && node.value && type(node.value) && !is_int_like(type_of(type(node.value))))
    error("type-mismatch", span(node.value), "a number is returned here, not " + show(type(node.value)));
  if (!unit_->function || !unit_->result) return;
  const bool wants_value = type_of(unit_->result).kind != Kind::kVoid;
  if (wants_value && !node.value) {
    error("no-value", ast()[id].span, "`" + unit_->function->name + "` returns " + show(unit_->result));
  } else if (node.value && type(node.value)) {
    Slot slot;
    slot.type = slot.firm = unit_->result;
    slot.is_declared = true;
    if (!wants_value || !slot.add(types(), type(node.value), constant(node.value), is_literal(node.value)))
      error("type-mismatch", span(node.value),
            "`" + unit_->function->name + "` returns " + show(unit_->result) + ", not " + show(type(node.value)));
  }
}

}  // namespace espy::check
