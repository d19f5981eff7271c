#include "check/calls.h"

#include <fmt/format.h>

#include "check/type_rules.h"

namespace espy::check {

using namespace syntax;

TypeId Calls::call(ExprId id, const Call& node) {
  for (size_t i = 0; i < facts_.ast().functions.size(); ++i)
    if (facts_.ast().functions[i].name == node.name) return call_function(id, node, i);
  const spec::Builtin* builtin = registry_.find_builtin(node.name);
  if (!builtin) {
    for (const ExprId argument : node.arguments)
      if (!facts_.ast().get<Name>(argument)) expressions_.expr(argument);
    if (node.arguments.empty())
      if (const auto found = context_fields_.name(id, node.name)) return *found;
    names_.report_unknown(node.name, node.name_span, true);
    return {};
  }
  // str($1) is the text of the parameter, also if it looks like a number.
  const auto* parameter = node.arguments.empty() ? nullptr : facts_.ast().get<Positional>(node.arguments[0]);
  if (parameter && builtin->reads_text_at) {
    facts_.fact(id).builtin = builtin;
    for (const ExprId argument : node.arguments) expressions_.expr(argument);
    const auto& given = config_.positional;
    const bool is_given = parameter->index >= 1 && parameter->index <= given.size();
    return facts_.set_text(id, is_given ? given[parameter->index - 1] : std::string());
  }
  return builtin_calls_.check(id, *builtin, node.arguments);
}

TypeId Calls::call_function(ExprId id, const Call& node, size_t index) {
  const syntax::Function& function = facts_.ast().functions[index];
  facts_.fact(id).function = static_cast<int32_t>(index);
  for (const ExprId argument : node.arguments) expressions_.read_value(argument);
  if (node.arguments.size() != function.parameters.size()) {
    reporter_.error("wrong-arity", facts_.span(id),
                    fmt::format("`{}` takes {} argument{}, {} given", node.name, function.parameters.size(),
                                function.parameters.size() == 1 ? "" : "s", node.arguments.size()));
  } else {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const ExprId argument = node.arguments[i];
      if (!facts_.type(argument) || !function.parameters[i].type) continue;
      Slot slot = Slot::of_type(type_names_.type(function.parameters[i].type));
      if (slot.type &&
          !slot.add(facts_.types(), facts_.type(argument), facts_.constant(argument), facts_.is_literal(argument)))
        reporter_.error("type-mismatch", facts_.span(argument),
                        fmt::format("`{}`'s {} parameter is {}, not {}", node.name, ordinal(i), facts_.show(slot.type),
                                    facts_.show(facts_.type(argument))));
    }
  }
  return function.result ? type_names_.type(function.result) : facts_.types().void_type();
}

}  // namespace espy::check
