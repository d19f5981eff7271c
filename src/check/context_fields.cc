#include "check/context_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/suggestions.h"
#include "syntax/format.h"

namespace espy::check {

using namespace syntax;

namespace {

// N of "argN"; nullopt for other names.
std::optional<size_t> argument_number(std::string_view name) {
  if (!name.starts_with("arg") || name.size() == 3 || name.size() > 6) return std::nullopt;
  size_t out = 0;
  for (const char c : name.substr(3)) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + static_cast<size_t>(c - '0');
  }
  return out;
}

std::string show_provider(const program::Probe& probe) {
  return probe.provider.empty() ? "this" : "`" + probe.provider + "`";
}

// True if the location covers all of these bytes of the value.
bool knows_bytes(const types::ValueLocation& location, uint32_t offset_bytes, uint32_t size_bytes) {
  uint32_t at = 0;
  for (const types::LocationPiece& piece : location.pieces) {
    const bool is_touched = at < offset_bytes + size_bytes && offset_bytes < at + piece.size_bytes;
    if (is_touched && piece.kind == types::LocationPiece::Kind::kNothing) return false;
    at += piece.size_bytes;
  }
  return at >= offset_bytes + size_bytes;
}

}  // namespace

const std::vector<spec::ContextField>* ContextFields::named(std::string_view word) const {
  if (word == "args") return &facts_.unit().context.args;
  return word == "locals" ? &facts_.unit().context.locals : nullptr;
}

// A `char *` of a user program is shown as text.
TypeId ContextFields::shown_type(const spec::ContextField& field) {
  constexpr uint64_t kShownBytes = 64;
  const types::Type& type = facts_.type_of(field.type);
  const bool is_text = field.recipe.kind == spec::Recipe::Kind::kLocation && type.kind == types::Kind::kPointer &&
                       facts_.type_of(type.element).char_like;
  if (!is_text) return field.type;
  return facts_.types().string(static_cast<uint32_t>(std::min(config_.max_strlen, kShownBytes)), true);
}

TypeId ContextFields::record_type(std::string_view word) {
  TypeId& known = record_types_[{facts_.unit_index(), std::string(word)}];
  if (!known) {
    std::vector<types::Member> members;
    for (const spec::ContextField& field : *named(word))
      if (field.type && field.unreadable.empty()) members.push_back({.name = field.name, .type = shown_type(field)});
    known = facts_.types().record(std::move(members));
  }
  return known;
}

void ContextFields::report_no_fields(std::string_view word, Span span) {
  const std::vector<spec::ContextField>& fields = *named(word);
  if (fields.empty()) return report_missing(fmt::format("`{}` here", word), span);
  const auto hinted = std::ranges::find_if(fields, [](const auto& field) { return !field.hint.empty(); });
  reporter_.error("unreadable", span, fmt::format("none of `{}` can be read at `{}`", word, facts_.first_probe().name),
                  hinted == fields.end() ? "" : fmt::format("`{}` is {}", hinted->name, hinted->hint));
}

void ContextFields::report_missing(const std::string& what, Span span, std::string hint) {
  reporter_.error("no-context", span, show_provider(facts_.first_probe()) + " probes have no " + what, std::move(hint));
}

TypeId ContextFields::use(ExprId id, const spec::ContextField& field) {
  if (!is_readable(field, facts_.span(id))) return {};
  facts_.fact(id).field = &field;
  return field.type;
}

std::optional<TypeId> ContextFields::recorded(ExprId id) {
  const std::vector<spec::ContextField>& fields = facts_.unit().context.recorded;
  const Ast& ast = facts_.ast();
  const bool may_be = !fields.empty() && (ast.get<Name>(id) || ast.get<Call>(id) || ast.get<Access>(id));
  if (!may_be) return std::nullopt;
  const auto found = std::ranges::find(fields, format(ast, id), &spec::ContextField::name);
  return found == fields.end() ? std::nullopt : std::optional(use(id, *found));
}

TypeId ContextFields::all_fields(ExprId id, const std::string& word) {
  if (std::ranges::any_of(*named(word), &std::string::empty, &spec::ContextField::unreadable)) return record_type(word);
  report_no_fields(word, facts_.span(id));
  return {};
}

TypeId ContextFields::return_value(ExprId id) {
  const auto& field = facts_.unit().context.retval;
  if (field) return use(id, *field);
  report_missing("`retval`", facts_.span(id), "kretprobe, uretprobe and fexit have it");
  return {};
}

// argN. Arguments on the stack (sargN) follow in the same list.
TypeId ContextFields::argument(ExprId id, const std::string& name, size_t number) {
  const spec::ProbeContext& context = facts_.unit().context;
  const auto is_stacked = [](const spec::ContextField& field) { return field.name.starts_with("sarg"); };
  const auto count =
      context.arguments.size() - static_cast<size_t>(std::ranges::count_if(context.arguments, is_stacked));
  if (number < count) return use(id, context.arguments[number]);
  if (count == 0)
    report_missing("`" + name + "`", facts_.span(id), context.args.empty() ? "" : "use `args`");
  else
    reporter_.error("no-context", facts_.span(id),
                    fmt::format("there is no `{}` here: the last one is `arg{}`", name, count - 1));
  return {};
}

std::optional<TypeId> ContextFields::name(ExprId id, const std::string& name) {
  if (named(name)) return all_fields(id, name);
  if (name == "retval") return return_value(id);
  if (const auto number = argument_number(name)) return argument(id, name, *number);
  if (!name.starts_with("sarg")) return std::nullopt;
  const std::vector<spec::ContextField>& arguments = facts_.unit().context.arguments;
  const auto field = std::ranges::find(arguments, name, &spec::ContextField::name);
  if (field == arguments.end()) return std::nullopt;
  if (!is_readable(*field, facts_.span(id))) return TypeId{};
  facts_.fact(id).field = &*field;
  return field->type;
}

bool ContextFields::is_readable(const spec::ContextField& field, Span span) {
  if (field.unreadable.empty()) return true;
  reporter_.error("unreadable", span, field.unreadable, field.hint);
  return false;
}

// As in a debugger, `locals` includes the arguments that no variable hides.
const spec::ContextField* ContextFields::field(std::string_view word, const std::string& name, Span span) {
  std::vector<std::string> names;
  for (const std::string_view list : {word, std::string_view("args")}) {
    const auto& fields = *named(list);
    const auto field = std::ranges::find(fields, name, &spec::ContextField::name);
    if (field != fields.end()) return is_readable(*field, span) ? &*field : nullptr;
    for (const spec::ContextField& known : fields) names.push_back(known.name);
    if (word == list && word == "args") break;
  }
  report_unknown_field(word, name, names, span);
  return nullptr;
}

void ContextFields::report_unknown_field(std::string_view word, const std::string& name,
                                         const std::vector<std::string>& names, Span span) {
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= 12) hint = "there are " + join(names, ", ");
  if (names.empty() && !kernel_.has_btf())
    hint = "the names of arguments are in the kernel's types (BTF), which it lacks";
  const program::Probe& probe = facts_.first_probe();
  const std::string what = word == "args" ? "argument" : "variable";
  reporter_.error("unknown-argument", span,
                  names.empty() ? fmt::format("{} probes have no `{}` here", show_provider(probe), word)
                                : fmt::format("`{}` has no {} `{}`", probe.name, what, name),
                  hint);
}

bool ContextFields::use_readable_part(ExprId base, const std::string& member_name) {
  const auto* outer = facts_.ast().get<Access>(base);
  const auto* word = outer ? facts_.ast().get<Name>(outer->base) : nullptr;
  const auto* fields = word ? named(word->name) : nullptr;
  if (!fields) return false;
  const auto field = std::ranges::find(*fields, outer->name, &spec::ContextField::name);
  if (field == fields->end() || field->unreadable.empty() || field->recipe.place.pieces.empty()) return false;
  const auto found = types::is_struct_like(facts_.type_of(field->type))
                         ? types::find_member(facts_.types(), field->type, member_name)
                         : std::nullopt;
  if (!found) return false;
  const uint32_t last_bit =
      found->offset_bits + (found->bit_size ? found->bit_size : facts_.type_of(found->type).size_bytes * 8);
  const uint32_t first_byte = found->offset_bits / 8;
  if (!knows_bytes(field->recipe.place, first_byte, (last_bit + 7) / 8 - first_byte)) return false;
  facts_.fact(base).field = &*field;
  facts_.fact(base).type = field->type;
  return true;
}

}  // namespace espy::check
