#include "check/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/suggestions.h"
#include "check/type_rules.h"
#include "kernel/abi_constants.h"

namespace espy::check {

using namespace syntax;

TypeId Names::name(ExprId id, const Name& node) {
  if (const auto found = context_fields_.name(id, node.name)) return *found;
  if (const auto define = defines_.find(node.name); define != defines_.end()) {
    if (is_expansion_too_long(id)) return {};
    facts_.fact(id).replacement = define->second;
    // Statements may be without a value.
    const bool is_statements = facts_.ast().get<Block>(define->second) || facts_.ast().get<Call>(define->second);
    ++open_replacements_;
    const TypeId replaced = is_statements ? expressions_.expr(define->second) : expressions_.value(define->second);
    --open_replacements_;
    facts_.fact(id).constant = facts_.constant(define->second);
    return replaced;
  }
  if (const spec::Builtin* builtin = registry_.find_builtin(node.name)) {
    if (builtin->kind != spec::BuiltinKind::kVariable) {
      reporter_.error("not-called", facts_.span(id), "`" + node.name + "` is a function",
                      "write `" + node.name + "(...)`");
      return {};
    }
    return builtin_calls_.check(id, *builtin, {});
  }
  if (const TypeId known = enumerator(id, node.name)) return known;
  if (const auto value = kernel::abi_constant(kernel_.arch(), node.name)) {
    facts_.fact(id).constant = *value;
    return *value < 0 ? facts_.types().int64() : literal_type(facts_.types(), static_cast<uint64_t>(*value));
  }
  if (const auto known = program_enumerator(ProgramTypes::Scope::kAny, node.name)) {
    facts_.fact(id).constant = known->value;
    return known->type;
  }
  report_unknown(node.name, facts_.span(id), false);
  return {};
}

// Counts the replacements within one that is not within another. A few lines can ask for billions.
bool Names::is_expansion_too_long(ExprId id) {
  constexpr uint32_t kMaxReplacements = 10'000;
  if (open_replacements_ == 0) replacements_ = 0;
  if (++replacements_ == kMaxReplacements + 1)
    reporter_.error("too-long", facts_.span(id), "the script is too long after macro expansion");
  return replacements_ > kMaxReplacements;
}

TypeId Names::enumerator(ExprId id, const std::string& name) {
  auto found = enumerators_.find(name);
  if (found == enumerators_.end())
    found = enumerators_.emplace(name, kernel_.find_enumerator(facts_.types(), name)).first;
  std::optional<kernel::Enumerated> known = found->second;
  const bool is_of_script = known && facts_.type_of(known->type).origin.btf_id == 0;
  if (!is_of_script)
    if (const auto own = program_enumerator(ProgramTypes::Scope::kOwn, name)) known = own;
  if (!known) return {};
  facts_.fact(id).constant = known->value;
  return known->type;
}

std::optional<kernel::Enumerated> Names::program_enumerator(ProgramTypes::Scope scope, const std::string& name) {
  const auto found = program_types_.find(scope, ProgramTypes::Category::kEnumerator, name);
  return found ? std::optional(kernel::Enumerated{found->type, found->value}) : std::nullopt;
}

void Names::report_unknown(std::string_view name, Span at, bool is_call) {
  if (!round_.is_final) return;
  std::vector<std::string> names;
  for (const auto& family : registry_.families())
    for (const spec::Builtin& row : family) names.emplace_back(spec::name_of(row));
  for (const auto& [define, unused] : defines_) names.push_back(define);
  for (const syntax::Function& function : facts_.ast().functions) names.push_back(function.name);
  for (const syntax::Macro& macro : facts_.ast().macros) names.push_back(macro.name);
  for (const char* word : {"args", "locals", "retval"}) names.emplace_back(word);
  const auto explained = is_call ? std::nullopt : program_types_.explain(std::string(name));
  if (explained && !explained->message.empty()) {
    reporter_.error("ambiguous-type", at, explained->message, explained->hint);
    return;
  }
  std::string hint = did_you_mean(name, names);
  if (is_call) {
    reporter_.error("unknown-function", at, fmt::format("no function named `{}`", name), hint);
    return;
  }
  if (hint.empty() && variables_.find("$" + std::string(name))) hint = fmt::format("did you mean `${}`?", name);
  if (hint.empty() && maps_.contains("@" + std::string(name))) hint = fmt::format("did you mean `@{}`?", name);
  const bool is_constant = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool has_includes = std::ranges::any_of(
      facts_.ast().c_definitions, [](const CDefinition& each) { return std::holds_alternative<CInclude>(each); });
  if (hint.empty() && is_constant) hint = did_you_mean(name, kernel::abi_constants(kernel_.arch()));
  if (hint.empty() && is_constant)
    hint = has_includes ? "if it is a macro of a kernel header, that header is not installed: `#define` it"
                        : "if it is a macro of a header, `#include` that or `#define` the macro";
  reporter_.error("unknown-name", at, fmt::format("nothing is named `{}`", name), hint);
}

}  // namespace espy::check
