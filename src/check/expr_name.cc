// Names: what the probe's context gives, builtins, enumerators, #defines.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/analyzer.h"

namespace espy::check {

using namespace syntax;

namespace {

// N of "argN"; nothing for other names.
std::optional<size_t> argument_number(std::string_view name) {
  if (!name.starts_with("arg") || name.size() == 3 || name.size() > 6) return std::nullopt;
  size_t out = 0;
  for (const char c : name.substr(3)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<size_t>(c - '0');
  }
  return out;
}

std::string provider_of(const program::Probe& probe) {
  return probe.provider.empty() ? "this" : "`" + probe.provider + "`";
}

}  // namespace

TypeId Analyzer::args_type() {
  TypeId& known = args_types_[unit_index_];
  if (!known) {
    std::vector<types::Member> members;
    for (const spec::ContextField& field : unit_->context.args)
      if (field.type) members.push_back({.name = field.name, .type = field.type});
    known = types().record(std::move(members));
  }
  return known;
}

TypeId Analyzer::context_name(ExprId id, const std::string& name, bool& found) {
  found = true;
  const spec::ProbeContext& context = unit_->context;
  if (name == "args") {
    if (!context.args.empty()) return args_type();
    error("no-context", span(id), provider_of(first_probe()) + " probes have no `args` here");
    return {};
  }
  if (name == "retval") {
    if (context.retval) {
      fact(id).field = &*context.retval;
      return context.retval->type;
    }
    error("no-context", span(id), provider_of(first_probe()) + " probes have no `retval`",
          "a return value is there in kretprobe, uretprobe and fexit");
    return {};
  }
  if (name == "ctx") {
    if (context.context_type) {
      fact(id).builtin = request_.registry.find_builtin(name);
      return context.context_type;
    }
    error("no-context", span(id), provider_of(first_probe()) + " probes have no `ctx`");
    return {};
  }
  if (const auto number = argument_number(name)) {
    const auto is_stacked = [](const spec::ContextField& field) { return field.name.starts_with("sarg"); };
    const auto count =
        context.arguments.size() - static_cast<size_t>(std::ranges::count_if(context.arguments, is_stacked));
    if (*number < count) {
      fact(id).field = &context.arguments[*number];
      return context.arguments[*number].type;
    }
    if (count == 0)
      error("no-context", span(id), provider_of(first_probe()) + " probes have no `" + name + "`",
            context.args.empty() ? "" : "use `args`");
    else
      error("no-context", span(id), fmt::format("there is no `{}` here: the last one is `arg{}`", name, count - 1));
    return {};
  }
  if (name.starts_with("sarg")) {
    const auto field = std::ranges::find(context.arguments, name, &spec::ContextField::name);
    if (field != context.arguments.end()) {
      fact(id).field = &*field;
      return field->type;
    }
  }
  found = false;
  return {};
}

const spec::ContextField* Analyzer::args_field(const std::string& name, Span at) {
  const auto& fields = unit_->context.args;
  const auto field = std::ranges::find(fields, name, &spec::ContextField::name);
  if (field != fields.end()) return &*field;
  std::vector<std::string> names;
  for (const spec::ContextField& known : fields) names.push_back(known.name);
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= 12) hint = "there are " + join(names, ", ");
  error("unknown-argument", at,
        fields.empty() ? provider_of(first_probe()) + " probes have no `args` here"
                       : "`" + first_probe().name + "` has no argument `" + name + "`",
        hint);
  return nullptr;
}

TypeId Analyzer::enumerator(ExprId id, const std::string& name) {
  auto found = enumerators_.find(name);
  if (found == enumerators_.end()) found = enumerators_.emplace(name, kernel().find_enumerator(types(), name)).first;
  if (!found->second) return {};
  fact(id).constant = found->second->value;
  return found->second->type;
}

TypeId Analyzer::visit(ExprId id, const Name& node) {
  bool found = false;
  const TypeId from_context = context_name(id, node.name, found);
  if (found) return from_context;
  if (const auto define = defines_.find(node.name); define != defines_.end()) {
    fact(id).replacement = define->second;
    // Statements have no value; whether one is needed is up to whoever looks at the name.
    const bool is_statements = ast().get<Block>(define->second) || ast().get<Call>(define->second);
    const TypeId replaced = is_statements ? expr(define->second) : value(define->second);
    fact(id).constant = constant(define->second);
    return replaced;
  }
  if (const spec::Builtin* builtin = request_.registry.find_builtin(node.name)) {
    if (builtin->kind != spec::BuiltinKind::kVariable) {
      error("not-called", span(id), "`" + node.name + "` is a function", "write `" + node.name + "(...)`");
      return {};
    }
    return builtin_use(id, *builtin, {});
  }
  if (const TypeId known = enumerator(id, node.name)) return known;
  unknown_name(node.name, span(id), false);
  return {};
}

void Analyzer::unknown_name(std::string_view name, Span at, bool is_call) {
  if (!speaks_) return;
  std::vector<std::string> names;
  for (const auto& family : request_.registry.families())
    for (const spec::Builtin& row : family) names.emplace_back(spec::name_of(row));
  for (const auto& [define, unused] : defines_) names.push_back(define);
  for (const syntax::Function& function : ast().functions) names.push_back(function.name);
  for (const syntax::Macro& macro : ast().macros) names.push_back(macro.name);
  for (const char* word : {"args", "retval", "ctx"}) names.emplace_back(word);
  std::string hint = did_you_mean(name, names);
  if (is_call) {
    error("unknown-function", at, fmt::format("no function named `{}`", name), hint);
    return;
  }
  if (hint.empty() && find_variable("$" + std::string(name))) hint = fmt::format("did you mean `${}`?", name);
  if (hint.empty() && maps_.contains("@" + std::string(name))) hint = fmt::format("did you mean `@{}`?", name);
  const bool is_constant = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool has_includes = std::ranges::any_of(
      ast().c_definitions, [](const CDefinition& each) { return std::holds_alternative<CInclude>(each); });
  if (hint.empty() && is_constant && has_includes)
    hint = "if it is a macro of a kernel header, that header is not installed: `#define` it";
  error("unknown-name", at, fmt::format("nothing is named `{}`", name), hint);
}

}  // namespace espy::check
