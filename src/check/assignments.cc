#include "check/assignments.h"

#include "check/func_symbol.h"
#include "check/type_rules.h"

namespace espy::check {

using namespace syntax;

TypeId Assignments::combine(const Assign& node, TypeId old) {
  const TypeId given = facts_.type(node.value);
  const TypeId found = operators_.result_type(*node.op, old, given, {}, node.value);
  if (!found)
    reporter_.error("bad-operands", facts_.span(node.value),
                    std::string("`") + spelling(*node.op) + "=` does not work on " + facts_.show(old) + " and " +
                        facts_.show(given));
  return found;
}

void Assignments::to_variable(ExprId target, const Assign& node) {
  const std::string& name = facts_.ast().get<syntax::Variable>(target)->name;
  const Span span = facts_.span(node.value);
  TypeId type = expressions_.read_value(node.value);
  if (type && types::is_aggregation(facts_.type_of(type))) {
    reporter_.error("aggregation-not-assigned", span, "an aggregation can only be assigned to a map");
    type = {};
  }
  VariableId id = variables_.find(name);
  if (!id) {
    if (node.op)
      reporter_.error("unset-variable", facts_.span(target),
                      "`" + name + "` is used before anything is assigned to it");
    id = variables_.declare_at(target, name);
  }
  if (use_func_as_symbol(facts_, node.value, variables_.type(id))) type = facts_.type(node.value);
  if (node.op && type) {
    const TypeId old = variables_.type(id);
    variables_.add(id, old ? combine(node, old) : type, {}, false, span);
  } else {
    variables_.add(id, type, facts_.constant(node.value), facts_.is_literal(node.value), span, node.value);
  }
  variables_.state(id).is_assigned = true;
  facts_.fact(target).variable = id;
  facts_.fact(target).type = variables_.type(id);
}

// False, with an error, if `node.value` is a whole map with keys.
bool Assignments::is_single_value(const Assign& node) {
  const auto* whole = facts_.ast().get<Map>(node.value);
  if (!whole || maps_.find_or_add(whole->name, facts_.span(node.value)).key.empty()) return true;
  reporter_.error("whole-map", facts_.span(node.value), "a whole map cannot be assigned to another one",
                  "name an element: `" + whole->name + "[KEY]`");
  return false;
}

void Assignments::to_map(ExprId target, const Assign& node) {
  const Span span = facts_.span(node.value);
  expressions_.value(node.value);
  MapState* state = map_expressions_.target(target);
  if (!state) return;
  map_expressions_.refuse_unknown_names(*state, target);
  const spec::Builtin* builtin = facts_.fact(node.value).builtin;
  const bool is_aggregation =
      builtin && facts_.ast().get<Call>(node.value) && builtin->kind == spec::BuiltinKind::kAggregation;
  if (!is_single_value(node)) return;
  if (is_aggregation && node.op) {
    reporter_.error("bad-operands", span, "an aggregation takes `=`, not an operator");
    return;
  }
  if (!is_aggregation) expressions_.read_aggregation(node.value);
  const TypeId held = state->value.type;
  if (!is_aggregation && held && types::is_aggregation(facts_.type_of(held))) {
    reporter_.error_with_note(
        "type-mismatch", span,
        "`" + maps_.name(*state) + "` holds " + facts_.show(held) + ", and cannot hold a plain value", {},
        {state->value_span, "first assigned here"});
    return;
  }
  if (node.op && facts_.type(node.value)) {
    const TypeId result = combine(node, maps_.value_type(*state));
    if (!result) return;
    maps_.add_type(*state, result, {}, false, span);
  } else {
    maps_.add_value(*state, node.value, span);
    // An aggregation has the sign of the map's values, which other assignments decide as well.
    if (is_aggregation) facts_.fact(node.value).type = state->value.type;
  }
  facts_.fact(target).type = state->value.type;
}

}  // namespace espy::check
