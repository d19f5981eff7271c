#include "check/calls.h"

#include <fmt/format.h>

#include <span>
#include <utility>

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
  if (builtin->reads_text_at && !node.arguments.empty()) {
    if (const auto text = parameter_text(node.arguments[0])) {
      facts_.fact(id).builtin = builtin;
      for (const ExprId argument : std::span(node.arguments).subspan(1)) expressions_.expr(argument);
      return facts_.set_text(id, *text);
    }
  }
  return builtin_calls_.check(id, *builtin, node.arguments);
}

// `$1` as text, also if it looks like a number; `$1 + 2` without its first two bytes. nullopt for other expressions.
std::optional<std::string> Calls::parameter_text(ExprId id) {
  const auto* sum = facts_.ast().get<Binary>(id);
  const bool is_sum = sum != nullptr && sum->op == BinaryOp::kAdd && facts_.ast().get<Positional>(sum->left) != nullptr;
  const auto* parameter = facts_.ast().get<Positional>(is_sum ? sum->left : id);
  if (parameter == nullptr) return std::nullopt;
  const auto& given = config_.positional;
  const bool is_given = parameter->index >= 1 && parameter->index <= given.size();
  const std::string text = is_given ? given[parameter->index - 1] : std::string();
  expressions_.expr(is_sum ? sum->left : id);
  if (!is_sum) return text;
  expressions_.number(sum->right);
  const auto skipped = facts_.integer(sum->right);
  if (skipped && *skipped >= 0 && std::cmp_less_equal(*skipped, text.size()))
    return text.substr(static_cast<size_t>(*skipped));
  if (!skipped)
    reporter_.error("not-constant", facts_.span(sum->right), "what is added to a parameter must be a constant");
  else
    reporter_.error("out-of-range", facts_.span(sum->right),
                    fmt::format("the parameter has {} byte{}", text.size(), text.size() == 1 ? "" : "s"));
  return std::string();
}

TypeId Calls::call_function(ExprId id, const Call& node, size_t index) {
  const syntax::Function& function = facts_.ast().functions[index];
  facts_.fact(id).function = static_cast<int32_t>(index);
  refuse_recursion(id, index);
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

constexpr size_t kMaxNesting = 16;  // of functions in calls, as in lower/expressions.cc

// Calls are inlined. Earlier rounds have found all calls by the time that errors count.
void Calls::refuse_recursion(ExprId id, size_t called) {
  const Function* caller = std::as_const(facts_).unit().function;
  if (!caller) return;
  const auto index = static_cast<size_t>(caller - facts_.ast().functions.data());
  calls_.emplace(index, called);
  std::set<size_t> seen;
  if (!calls(called, index, seen)) {
    std::map<size_t, size_t> known;
    if (nesting(called, known) == kMaxNesting)
      reporter_.error("nested-functions", facts_.span(id),
                      fmt::format("functions call each other more than {} deep", kMaxNesting),
                      "calls are inlined; call some of these functions from the probe");
    return;
  }
  const std::string& name = facts_.ast().functions[called].name;
  reporter_.error("recursive-function", facts_.span(id),
                  called == index
                      ? fmt::format("the function `{}` calls itself", name)
                      : fmt::format("the function `{}` calls `{}`, which calls it again", caller->name, name),
                  "BPF programs cannot recurse; use a loop");
}

bool Calls::calls(size_t caller, size_t called, std::set<size_t>& seen) const {
  if (caller == called) return true;
  if (!seen.insert(caller).second) return false;
  for (auto it = calls_.lower_bound({caller, 0}); it != calls_.end() && it->first == caller; ++it)
    if (calls(it->second, called, seen)) return true;
  return false;
}

size_t Calls::nesting(size_t function, std::map<size_t, size_t>& known) const {
  if (const auto [entry, is_new] = known.emplace(function, 1); !is_new) return entry->second;
  size_t most = 0;
  for (auto it = calls_.lower_bound({function, 0}); it != calls_.end() && it->first == function; ++it)
    most = std::max(most, nesting(it->second, known));
  return known[function] = most + 1;
}

}  // namespace espy::check
