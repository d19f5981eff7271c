#include "check/statements.h"

#include <fmt/format.h>

#include "check/type_rules.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

void Statements::statement(StmtId id) {
  std::visit([&](const auto& node) { visit(id, node); }, facts_.ast()[id].node);
}

void Statements::visit(StmtId, const ExprStmt& node) {
  if (!node.value) return;
  facts_.fact(node.value).is_statement = true;
  const TypeId type_id = expressions_.expr(node.value);
  const ExprNode& what = facts_.ast()[node.value].node;
  const bool is_call = std::holds_alternative<Call>(what);
  const bool has_effect = is_call || std::holds_alternative<Block>(what) || std::holds_alternative<If>(what) ||
                          std::holds_alternative<ErrorExpr>(what) || std::holds_alternative<Comptime>(what) ||
                          std::holds_alternative<Unary>(what) || std::holds_alternative<Ternary>(what);
  if (!type_id || facts_.type_of(type_id).kind == Kind::kVoid) return;
  if (types::is_aggregation(facts_.type_of(type_id)) && is_call) {
    reporter_.error("aggregation-not-assigned", facts_.span(node.value), "an aggregation must be assigned to a map",
                    "write `@ = " + std::string(sources_.text(facts_.span(node.value))) + "`");
    return;
  }
  if (!has_effect)
    reporter_.warning("unused-value", facts_.span(node.value), "this value is not used",
                      "write `_ = ...` to discard it");
}

void Statements::visit(StmtId, const Assign& node) {
  if (!node.target || !node.value) return;
  if (facts_.ast().get<syntax::Variable>(node.target)) return assignments_.to_variable(node.target, node);
  const auto* index = facts_.ast().get<Index>(node.target);
  if (facts_.ast().get<Map>(node.target) || (index && facts_.ast().get<Map>(index->base)))
    return assignments_.to_map(node.target, node);
  expressions_.expr(node.value);
  expressions_.expr(node.target);
  if (!facts_.ast().get<ErrorExpr>(node.target))
    reporter_.error("not-assignable", facts_.span(node.target), "this cannot be assigned to",
                    "only variables and maps can be assigned to");
}

void Statements::visit(StmtId id, const Let& node) {
  TypeId declared = node.type ? type_names_.type(node.type) : TypeId{};
  if (node.value) expressions_.read_value(node.value);
  StmtFact& out = facts_.unit().stmts[id];
  if (node.name.starts_with('@') || node.name.empty()) return;
  out.variable = variables_.declare({DeclarationSite::Kind::kStatement, id.index}, node.name, node.name_span, true);
  VariableState& state = variables_.state(out.variable);
  if (declared) {
    if (!state.slot.is_refined) variables_.set_type(out.variable, declared);
    state.slot.is_declared = true;
  }
  if (node.value) {
    variables_.add(out.variable, facts_.type(node.value), facts_.constant(node.value), facts_.is_literal(node.value),
                   facts_.span(node.value), node.value);
    variables_.state(out.variable).is_assigned = true;
  } else {
    // Values that are held by reference (arrays and the like) are initialized with zeros; only `let` can do so.
    const TypeId type = variables_.type(out.variable);
    state.is_assigned = declared && types::is_by_reference(facts_.type_of(type));
    state.is_let = true;
  }
  out.type = variables_.type(out.variable);
}

void Statements::visit(StmtId, const Discard& node) {
  if (node.value) expressions_.value(node.value);
}

void Statements::loop_body(ExprId body) {
  variables_.enter_loop();
  if (body) expressions_.expr(body);
  variables_.leave_loop();
}

void Statements::visit(StmtId, const While& node) {
  if (node.condition) expressions_.condition(node.condition);
  loop_body(node.body);
}

void Statements::visit(StmtId, const Unroll& node) {
  constexpr int64_t kMaxCopies = 10'000;  // of the innermost body
  const int64_t copies_before = copies_;
  if (node.count) {
    expressions_.number(node.count);
    const auto count = facts_.integer(node.count);
    if (!count && facts_.type(node.count))
      reporter_.error("not-constant", facts_.span(node.count), "`unroll` takes a constant");
    else if (count && (*count < 1 || *count > 100))
      reporter_.error("out-of-range", facts_.span(node.count),
                      "`unroll` repeats 1 to 100 times, not " + std::to_string(*count));
    else if (count && (copies_ *= *count) > kMaxCopies)
      reporter_.error("too-long", facts_.span(node.count),
                      fmt::format("nested `unroll`s repeat this {} times, {} at most", copies_, kMaxCopies),
                      "use `for ($i : 0..N)`");
  }
  if (copies_ <= kMaxCopies) loop_body(node.body);
  copies_ = copies_before;
}

// The values of one element of a map of recent().
void Statements::for_element(StmtId id, const ForMap& node) {
  const MapState* map = map_expressions_.target(node.map);
  const TypeId held = map ? map->value.type : TypeId{};
  const bool is_recent = held && facts_.type_of(held).kind == Kind::kRecent;
  if (!is_recent)
    reporter_.error("not-a-map", facts_.span(node.map), "`for` iterates over a map, an element of `recent`, or a range",
                    "write `for ($i : 0..10)`");
  facts_.fact(node.map).type = held;
  variables_.enter_scope();
  const VariableId variable =
      variables_.declare({DeclarationSite::Kind::kStatement, id.index}, node.variable, node.variable_span, true);
  variables_.set_type(variable, is_recent ? facts_.type_of(held).element : facts_.types().int64());
  variables_.state(variable).is_assigned = true;
  facts_.unit().stmts[id] = {variable, variables_.type(variable)};
  loop_body(node.body);
  variables_.leave_scope();
}

void Statements::visit(StmtId id, const ForMap& node) {
  if (facts_.ast().get<Index>(node.map)) return for_element(id, node);
  MapState* map = node.map ? map_expressions_.argument(node.map, false) : nullptr;
  if (!map) {
    if (node.map && !facts_.ast().get<ErrorExpr>(node.map))
      reporter_.error("not-a-map", facts_.span(node.map), "`for` iterates over a map or a range",
                      "write `for ($i : 0..10)`");
  } else if (map->key.empty() && map->scalar_span.valid()) {
    reporter_.error_with_note("map-has-no-key", facts_.span(node.map),
                              "`" + maps_.name(*map) + "` has no keys to iterate over", {},
                              {map->scalar_span, "used without a key here"});
  } else if (!kernel_.has(kernel::Feature::kForEachMapElem)) {
    reporter_.error("kernel-lacks", facts_.span(node.map),
                    kernel::missing_feature(kernel::Feature::kForEachMapElem, "`for` over a map"));
  }
  variables_.enter_scope();
  StmtFact& out = facts_.unit().stmts[id];
  out.variable =
      variables_.declare({DeclarationSite::Kind::kStatement, id.index}, node.variable, node.variable_span, true);
  if (map) {
    TypeId value_type = maps_.value_type(*map);
    if (const TypeId reduced = reduced_type(facts_.types(), value_type)) {
      value_type = reduced;
      variables_.state(out.variable).iterates_aggregation = true;
    }
    TypeId key = maps_.key_type(*map);
    if (facts_.type_of(key).kind == Kind::kVoid) key = facts_.types().int64();
    variables_.set_type(out.variable, facts_.types().tuple({key, value_type}));
  }
  variables_.state(out.variable).is_assigned = true;
  facts_.unit().stmts[id].type = variables_.type(out.variable);
  loop_body(node.body);
  variables_.leave_scope();
}

void Statements::visit(StmtId id, const ForRange& node) {
  if (node.begin) expressions_.number(node.begin);
  if (node.end) expressions_.number(node.end);
  variables_.enter_scope();
  const VariableId variable =
      variables_.declare({DeclarationSite::Kind::kStatement, id.index}, node.variable, node.variable_span, true);
  variables_.set_type(variable, facts_.types().int64());
  variables_.state(variable).is_assigned = true;
  facts_.unit().stmts[id] = {variable, facts_.types().int64()};
  loop_body(node.body);
  variables_.leave_scope();
}

void Statements::visit(StmtId id, const Break&) {
  if (!variables_.is_in_loop()) reporter_.error("not-in-loop", facts_.ast()[id].span, "`break` outside a loop");
}

void Statements::visit(StmtId id, const Continue&) {
  if (!variables_.is_in_loop()) reporter_.error("not-in-loop", facts_.ast()[id].span, "`continue` outside a loop");
}

void Statements::visit(StmtId id, const Return& node) {
  const TypeId given = node.value ? expressions_.read_value(node.value) : TypeId{};
  const Unit& unit = facts_.unit();
  if (unit.context.returns_value && given && !is_int_like(facts_.type_of(given)))
    reporter_.error("type-mismatch", facts_.span(node.value),
                    "an integer must be returned here, not " + facts_.show(given));
  if (!unit.function || !unit.result) return;
  const std::string& name = unit.function->name;
  const bool wants_value = facts_.type_of(unit.result).kind != Kind::kVoid;
  if (wants_value && !node.value) {
    reporter_.error("no-value", facts_.ast()[id].span, "`" + name + "` returns " + facts_.show(unit.result));
  } else if (given) {
    Slot slot = Slot::of_type(unit.result);
    if (!wants_value || !slot.add(facts_.types(), given, facts_.constant(node.value), facts_.is_literal(node.value)))
      reporter_.error("type-mismatch", facts_.span(node.value),
                      "`" + name + "` returns " + facts_.show(unit.result) + ", not " + facts_.show(given));
  }
}

}  // namespace espy::check
