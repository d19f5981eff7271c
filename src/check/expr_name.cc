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

const std::vector<spec::ContextField>* Analyzer::fields_named(std::string_view word) const {
  if (word == "args") return &unit_->context.args;
  return word == "locals" ? &unit_->context.locals : nullptr;
}

// Of a program's `char *` people want to see the text.
TypeId Analyzer::shown_type(const spec::ContextField& field) {
  constexpr uint64_t kShownBytes = 64;
  const types::Type& type = type_of(field.type);
  const bool is_text = field.recipe.kind == spec::Recipe::Kind::kLocation && type.kind == types::Kind::kPointer &&
                       type_of(type.element).char_like;
  if (!is_text) return field.type;
  return types().string(static_cast<uint32_t>(std::min(checked_.config.max_strlen, kShownBytes)), true);
}

// `args` or `locals` whole: a record of those that can be read here.
TypeId Analyzer::fields_type(std::string_view word) {
  TypeId& known = fields_types_[{unit_index_, std::string(word)}];
  if (!known) {
    std::vector<types::Member> members;
    for (const spec::ContextField& field : *fields_named(word))
      if (field.type && field.unreadable.empty()) members.push_back({.name = field.name, .type = shown_type(field)});
    known = types().record(std::move(members));
  }
  return known;
}

void Analyzer::no_fields(std::string_view word, Span at) {
  const std::vector<spec::ContextField>& fields = *fields_named(word);
  const std::string nothing = word == "args" ? "`args`" : "`locals`";
  if (fields.empty())
    return void(error("no-context", at, provider_of(first_probe()) + " probes have no " + nothing + " here"));
  const auto hinted = std::ranges::find_if(fields, [](const auto& field) { return !field.hint.empty(); });
  error("unreadable", at, "none of " + nothing + " can be read at `" + first_probe().name + "`",
        hinted == fields.end() ? "" : fmt::format("`{}` is {}", hinted->name, hinted->hint));
}

TypeId Analyzer::context_name(ExprId id, const std::string& name, bool& found) {
  found = true;
  const spec::ProbeContext& context = unit_->context;
  if (const auto* fields = fields_named(name)) {
    if (std::ranges::any_of(*fields, &std::string::empty, &spec::ContextField::unreadable)) return fields_type(name);
    no_fields(name, span(id));
    return {};
  }
  if (name == "retval") {
    if (context.retval && !is_readable(*context.retval, span(id))) return {};
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
      if (!is_readable(context.arguments[*number], span(id))) return {};
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

bool Analyzer::is_readable(const spec::ContextField& field, Span at) {
  if (field.unreadable.empty()) return true;
  error("unreadable", at, field.unreadable, field.hint);
  return false;
}

// A debugger knows arguments among the variables; so `locals` finds them where no variable hides them.
const spec::ContextField* Analyzer::field_named(std::string_view word, const std::string& name, Span at) {
  std::vector<std::string> names;
  for (const std::string_view place : {word, std::string_view("args")}) {
    const auto& fields = *fields_named(place);
    const auto field = std::ranges::find(fields, name, &spec::ContextField::name);
    if (field != fields.end()) return is_readable(*field, at) ? &*field : nullptr;
    for (const spec::ContextField& known : fields) names.push_back(known.name);
    if (word == place && word == "args") break;
  }
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= 12) hint = "there are " + join(names, ", ");
  if (names.empty() && !kernel().has_btf())
    hint = "the names of arguments are in the kernel's types (BTF), which it lacks";
  const std::string what = word == "args" ? "argument" : "variable";
  error("unknown-argument", at,
        names.empty() ? fmt::format("{} probes have no `{}` here", provider_of(first_probe()), word)
                      : fmt::format("`{}` has no {} `{}`", first_probe().name, what, name),
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
  if (!is_final_round_) return;
  std::vector<std::string> names;
  for (const auto& family : request_.registry.families())
    for (const spec::Builtin& row : family) names.emplace_back(spec::name_of(row));
  for (const auto& [define, unused] : defines_) names.push_back(define);
  for (const syntax::Function& function : ast().functions) names.push_back(function.name);
  for (const syntax::Macro& macro : ast().macros) names.push_back(macro.name);
  for (const char* word : {"args", "locals", "retval", "ctx"}) names.emplace_back(word);
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
