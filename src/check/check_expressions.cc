#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "check/checker.h"
#include "kernel/abi_constants.h"
#include "program/program.h"
#include "syntax/format_script.h"

namespace espy::check {

using namespace syntax;
using types::Kind;

constexpr int kMaxExprDepth = 400;  // the parser's own limit is lower; macros and #defines nest further

TypeId Checker::check_expr(ExprId id) {
  if (!id) return {};
  ExprFact& out = fact(id);
  if (++expr_depth_ > kMaxExprDepth) {
    error("too-deep", span_of(id), "this is nested too deeply");
    --expr_depth_;
    return {};
  }
  out.constant = {};
  out.is_reduced = false;
  const auto recorded = recorded_value(id);
  const auto visit_node = [&](const auto& node) { return visit(id, node); };
  const TypeId found = recorded ? *recorded : std::visit(visit_node, ast_[id].node);
  --expr_depth_;
  // A changed type needs no further round by itself: it follows from those of variables and maps.
  return fact(id).type = found;
}

TypeId Checker::check_value(ExprId id) {
  const TypeId found = check_expr(id);
  if (found && type_of(found).kind == Kind::kVoid) {
    // A map that is never assigned has no type; it reads as 0.
    if (fact(id).map.valid()) return fact(id).type = types_.int64();
    error("no-value", span_of(id), "this has no value");
    return fact(id).type = {};
  }
  return found;
}

TypeId Checker::read_value(ExprId id, bool is_printed) {
  check_value(id);
  read_aggregation(id, is_printed);
  return type(id);
}

void Checker::read_aggregation(ExprId id, bool is_printed) {
  if (!id) return;
  ExprFact& out = fact(id);
  if (out.builtin && out.builtin->kind == spec::BuiltinKind::kAggregation) {
    error("aggregation-not-assigned", span_of(id), "an aggregation can only be assigned to a map");
    out.type = {};
    return;
  }
  if (!out.type || !out.map.valid() || !types::is_aggregation(type_of(out.type))) return;
  const TypeId number_type = reduced_type(types_, out.type);
  if (!number_type && !is_printed) {
    const bool is_recent = type_of(out.type).kind == Kind::kRecent;
    error("not-a-number", span_of(id),
          is_recent ? "this holds the last values of `recent`: only `print`, `len` and `for` take them"
                    : show(out.type) + " is not one number: only `print` takes it");
    out.type = {};
    return;
  }
  out.is_reduced = type_of(out.type).kind != Kind::kRecent;
  if (number_type) out.type = number_type;
}

TypeId Checker::check_integer(ExprId id) {
  const TypeId found = read_value(id);
  if (found && !is_int_like(type_of(found)))
    error("not-a-number", span_of(id), "this must be an integer, not " + show(found));
  return found;
}

void Checker::check_condition(ExprId id) {
  const TypeId found = read_value(id);
  if (found && !is_truthy(type_of(found)))
    error("not-a-condition", span_of(id), "a condition must be an integer, a pointer or a string, not " + show(found));
}

// ---- Constants, and questions about types: literals, parameters, sizeof, typeinfo, comptime

TypeId Checker::visit(ExprId id, const IntegerLiteral& node) {
  fact(id).constant = static_cast<int64_t>(node.value);
  return literal_type(types_, node.value);
}

TypeId Checker::visit(ExprId id, const BoolLiteral& node) {
  fact(id).constant = int64_t{node.value};
  return types_.bool_type();
}

TypeId Checker::visit(ExprId id, const StringLiteral& node) { return set_text(id, node.value); }

TypeId Checker::visit(ExprId id, const Positional& node) {
  const auto& given = config_.arguments.positional;
  if (node.index == 0 || node.index > given.size()) return set_number(id, {0});
  const std::string& text = given[node.index - 1];
  if (const auto number = parse_int(text)) return set_number(id, {*number, *number < 0 && text[0] != '-'});
  return set_text(id, text);
}

TypeId Checker::visit(ExprId id, const PositionalCount&) {
  return set_number(id, {static_cast<int64_t>(config_.arguments.positional.size())});
}

bool Checker::is_value_word(const std::string& word) const {
  return word == "args" || word == "locals" || word == "retval" || defines_.contains(word) ||
         registry_.find_builtin(word) != nullptr;
}

TypeId Checker::operand_type(ExprId operand) {
  if (const auto* type = ast_.get<TypeExpr>(operand)) return named_type(type->type);
  // The parser cannot tell a type with a name of its own from a value.
  const auto* word = ast_.get<Name>(operand);
  if (word && !is_value_word(word->name))
    if (const TypeId named = plain_type(word->name)) return fact(operand).type = named;
  return check_value(operand);
}

TypeId Checker::visit(ExprId id, const Sizeof& node) {
  const TypeId found = operand_type(node.operand);
  if (!found) return {};
  complete_by_kernel(found);
  // An enumerator is a number of 64 bits, whatever its enum is stored in.
  const bool is_enumerator =
      ast_.get<Name>(node.operand) && type_of(found).kind == Kind::kEnum && is_constant(node.operand);
  set_number(id, {is_enumerator ? 8 : type_of(found).size_bytes});
  return types_.uint64();
}

TypeId Checker::visit(ExprId id, const Offsetof& node) {
  TypeId at = operand_type(node.operand);
  uint64_t offset = 0;
  for (const std::string& name : node.path) {
    if (!at) return {};
    complete_by_kernel(at);
    const auto found = types::find_member(types_, at, name);
    if (!found) {
      error("unknown-member", node.path_span, show(at) + " has no member `" + name + "`");
      return {};
    }
    offset += found->offset_bits / 8;
    at = found->type;
  }
  set_number(id, {static_cast<int64_t>(offset)});
  return types_.uint64();
}

TypeId Checker::type_property(ExprId id, const Typeinfo& node, const std::string& name, Span at) {
  const TypeId found = operand_type(node.operand);
  if (!found) return {};
  if (name == "base_type") {
    const Kind kind = type_of(found).kind;
    return set_text(id, program::is_probe_name(kind) ? "string" : std::string(types::kind_word(kind)));
  }
  if (name == "full_type") return set_text(id, types::to_string(types_, found));
  if (name == "btf_id") {
    const auto location = kernel_.btf_location(types_, found);
    return set_number(id, {location ? int64_t{location->btf_id} : 0});
  }
  error("unknown-member", at, "`typeinfo` has no member `" + name + "`",
        did_you_mean(name, {"base_type", "full_type", "btf_id"}));
  return {};
}

TypeId Checker::visit(ExprId id, const Comptime& node) {
  const TypeId found = check_value(node.operand);
  fact(id).constant = constant(node.operand);
  if (found && !is_constant(node.operand))
    error("not-constant", span_of(node.operand), "this is not known at compile time");
  return found;
}

TypeId Checker::visit(ExprId, const TypeExpr& node) {
  named_type(node.type);
  return types_.void_type();
}

// ---- Names

TypeId Checker::visit(ExprId id, const Name& node) {
  if (const auto found = context_word(id, node.name)) return *found;
  if (const auto define = defines_.find(node.name); define != defines_.end()) {
    if (is_expansion_too_long(id)) return {};
    fact(id).replacement = define->second;
    // Statements may be without a value.
    const bool is_statements = ast_.get<Block>(define->second) || ast_.get<Call>(define->second);
    ++open_replacements_;
    const TypeId replaced = is_statements ? check_expr(define->second) : check_value(define->second);
    --open_replacements_;
    fact(id).constant = constant(define->second);
    return replaced;
  }
  if (const spec::Builtin* builtin = registry_.find_builtin(node.name)) {
    if (builtin->kind != spec::BuiltinKind::kVariable) {
      error("not-called", span_of(id), "`" + node.name + "` is a function", "write `" + node.name + "(...)`");
      return {};
    }
    return check_builtin(id, *builtin, {});
  }
  if (const TypeId known = enumerator_type(id, node.name)) return known;
  if (const auto value = kernel::abi_constant(kernel_.arch(), node.name)) {
    fact(id).constant = *value;
    return *value < 0 ? types_.int64() : literal_type(types_, static_cast<uint64_t>(*value));
  }
  if (const auto known = find_in_programs(ProgramScope::kAny, Category::kEnumerator, node.name)) {
    fact(id).constant = known->value;
    return known->type;
  }
  report_unknown_name(node.name, span_of(id), false);
  return {};
}

// Counts the replacements within one that is not within another. A few lines can ask for billions.
bool Checker::is_expansion_too_long(ExprId id) {
  constexpr uint32_t kMaxReplacements = 10'000;
  if (open_replacements_ == 0) replacements_ = 0;
  if (++replacements_ == kMaxReplacements + 1)
    error("too-long", span_of(id), "the script is too long after macro expansion");
  return replacements_ > kMaxReplacements;
}

TypeId Checker::enumerator_type(ExprId id, const std::string& name) {
  auto found = enumerators_.find(name);
  if (found == enumerators_.end()) found = enumerators_.emplace(name, kernel_.find_enumerator(types_, name)).first;
  std::optional<kernel::Enumerated> known = found->second;
  const bool is_of_script = known && type_of(known->type).origin.btf_id == 0;
  if (!is_of_script)
    if (const auto own = find_in_programs(ProgramScope::kOwn, Category::kEnumerator, name)) known = own;
  if (!known) return {};
  fact(id).constant = known->value;
  return known->type;
}

void Checker::report_unknown_name(std::string_view name, Span at, bool is_call) {
  if (!is_final_) return;
  std::vector<std::string> names;
  for (const auto& family : registry_.families())
    for (const spec::Builtin& row : family) names.emplace_back(spec::name_of(row));
  for (const auto& [define, unused] : defines_) names.push_back(define);
  for (const syntax::Function& function : ast_.functions) names.push_back(function.name);
  for (const syntax::Macro& macro : ast_.macros) names.push_back(macro.name);
  for (const char* word : {"args", "locals", "retval"}) names.emplace_back(word);
  const auto explained = is_call ? std::nullopt : explain_missing_type(std::string(name));
  if (explained && !explained->message.empty()) {
    error("ambiguous-type", at, explained->message, explained->hint);
    return;
  }
  std::string hint = did_you_mean(name, names);
  if (is_call) {
    error("unknown-function", at, fmt::format("no function named `{}`", name), hint);
    return;
  }
  if (hint.empty() && find_variable("$" + std::string(name))) hint = fmt::format("did you mean `${}`?", name);
  if (hint.empty() && map_states_.contains("@" + std::string(name))) hint = fmt::format("did you mean `@{}`?", name);
  const bool is_constant = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool has_includes = std::ranges::any_of(
      ast_.c_definitions, [](const CDefinition& each) { return std::holds_alternative<CInclude>(each); });
  if (hint.empty() && is_constant) hint = did_you_mean(name, kernel::abi_constants(kernel_.arch()));
  if (hint.empty() && name == "NULL") hint = "write 0";
  const bool is_word = std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
  if (hint.empty() && is_word) hint = fmt::format("strings need double quotes: \"{}\"", name);
  if (hint.empty() && is_constant)
    hint = has_includes ? "if it is a macro of a kernel header, that header is not installed: `#define` it"
                        : "if it is a macro of a header, `#include` that or `#define` the macro";
  error("unknown-name", at, fmt::format("nothing is named `{}`", name), hint);
}

// ---- What a probe's context offers

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

const std::vector<spec::ContextField>* Checker::context_fields(std::string_view word) const {
  if (word == "args") return &unit().context.args;
  return word == "locals" ? &unit().context.locals : nullptr;
}

// A `char *` of a user program is shown as text.
TypeId Checker::shown_type(const spec::ContextField& field) {
  constexpr uint64_t kShownBytes = 64;
  const types::Type& type = type_of(field.type);
  const bool is_text = field.recipe.kind == spec::Recipe::Kind::kLocation && type.kind == types::Kind::kPointer &&
                       type_of(type.element).char_like;
  if (!is_text) return field.type;
  return types_.string(static_cast<uint32_t>(std::min(config_.limits.max_strlen, kShownBytes)), true);
}

TypeId Checker::context_record(std::string_view word) {
  TypeId& known = context_records_[{unit_index_, std::string(word)}];
  if (!known) {
    std::vector<types::Member> members;
    for (const spec::ContextField& field : *context_fields(word))
      if (field.type && field.unreadable.empty()) members.push_back({.name = field.name, .type = shown_type(field)});
    known = types_.record(std::move(members));
  }
  return known;
}

void Checker::report_no_fields(std::string_view word, Span span) {
  const std::vector<spec::ContextField>& fields = *context_fields(word);
  if (fields.empty()) return report_missing_context(fmt::format("`{}` here", word), span);
  const auto hinted = std::ranges::find_if(fields, [](const auto& field) { return !field.hint.empty(); });
  error("unreadable", span, fmt::format("none of `{}` can be read at `{}`", word, first_probe().name),
        hinted == fields.end() ? "" : fmt::format("`{}` is {}", hinted->name, hinted->hint));
}

void Checker::report_missing_context(const std::string& what, Span span, std::string hint) {
  error("no-context", span, show_provider(first_probe()) + " probes have no " + what, std::move(hint));
}

TypeId Checker::use_context_field(ExprId id, const spec::ContextField& field) {
  if (!is_readable(field, span_of(id))) return {};
  fact(id).field = &field;
  return field.type;
}

std::optional<TypeId> Checker::recorded_value(ExprId id) {
  const std::vector<spec::ContextField>& fields = unit().context.recorded;
  const bool may_be = !fields.empty() && (ast_.get<Name>(id) || ast_.get<Call>(id) || ast_.get<Access>(id));
  if (!may_be) return std::nullopt;
  const auto found = std::ranges::find(fields, format(ast_, id), &spec::ContextField::name);
  return found == fields.end() ? std::nullopt : std::optional(use_context_field(id, *found));
}

TypeId Checker::all_context_fields(ExprId id, const std::string& word) {
  if (std::ranges::any_of(*context_fields(word), &std::string::empty, &spec::ContextField::unreadable))
    return context_record(word);
  report_no_fields(word, span_of(id));
  return {};
}

TypeId Checker::return_value(ExprId id) {
  const auto& field = unit().context.retval;
  if (field) return use_context_field(id, *field);
  report_missing_context("`retval`", span_of(id), "kretprobe, uretprobe and fexit have it");
  return {};
}

// argN. Arguments on the stack (sargN) follow in the same list.
TypeId Checker::numbered_argument(ExprId id, const std::string& name, size_t number) {
  const spec::ProbeContext& context = unit().context;
  const auto is_stacked = [](const spec::ContextField& field) { return field.name.starts_with("sarg"); };
  const auto count =
      context.arguments.size() - static_cast<size_t>(std::ranges::count_if(context.arguments, is_stacked));
  if (number < count) return use_context_field(id, context.arguments[number]);
  if (count == 0)
    report_missing_context("`" + name + "`", span_of(id),
                           first_probe().provider.ends_with("tracepoint")
                               ? fmt::format("write `args.NAME`: `espy list -v {}` shows the names", first_probe().name)
                           : context.args.empty() ? ""
                                                  : "use `args`");
  else
    error("no-context", span_of(id), fmt::format("there is no `{}` here: the last one is `arg{}`", name, count - 1));
  return {};
}

std::optional<TypeId> Checker::context_word(ExprId id, const std::string& name) {
  if (context_fields(name)) return all_context_fields(id, name);
  if (name == "retval") return return_value(id);
  if (const auto number = argument_number(name)) return numbered_argument(id, name, *number);
  if (!name.starts_with("sarg")) return std::nullopt;
  const std::vector<spec::ContextField>& arguments = unit().context.arguments;
  const auto field = std::ranges::find(arguments, name, &spec::ContextField::name);
  if (field == arguments.end()) return std::nullopt;
  if (!is_readable(*field, span_of(id))) return TypeId{};
  fact(id).field = &*field;
  return field->type;
}

bool Checker::is_readable(const spec::ContextField& field, Span span) {
  if (field.unreadable.empty()) return true;
  error("unreadable", span, field.unreadable, field.hint);
  return false;
}

// As in a debugger, `locals` includes the arguments that no variable hides.
const spec::ContextField* Checker::context_field(std::string_view word, const std::string& name, Span span) {
  std::vector<std::string> names;
  for (const std::string_view list : {word, std::string_view("args")}) {
    const auto& fields = *context_fields(list);
    const auto field = std::ranges::find(fields, name, &spec::ContextField::name);
    if (field != fields.end()) return is_readable(*field, span) ? &*field : nullptr;
    for (const spec::ContextField& known : fields) names.push_back(known.name);
    if (word == list && word == "args") break;
  }
  report_unknown_field(word, name, names, span);
  return nullptr;
}

void Checker::report_unknown_field(std::string_view word, const std::string& name,
                                   const std::vector<std::string>& names, Span span) {
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= 12) hint = "there are " + join(names, ", ");
  if (names.empty() && !kernel_.has_btf())
    hint = "the names of arguments are in the kernel's types (BTF), which it lacks";
  const program::Probe& probe = first_probe();
  const std::string what = word == "args" ? "argument" : "variable";
  error("unknown-argument", span,
        names.empty() ? fmt::format("{} probes have no `{}` here", show_provider(probe), word)
                      : fmt::format("`{}` has no {} `{}`", probe.name, what, name),
        hint);
}

bool Checker::use_readable_part(ExprId base, const std::string& member_name) {
  const auto* outer = ast_.get<Access>(base);
  const auto* word = outer ? ast_.get<Name>(outer->base) : nullptr;
  const auto* fields = word ? context_fields(word->name) : nullptr;
  if (!fields) return false;
  const auto field = std::ranges::find(*fields, outer->name, &spec::ContextField::name);
  if (field == fields->end() || field->unreadable.empty() || field->recipe.place.pieces.empty()) return false;
  const auto found =
      types::is_struct_like(type_of(field->type)) ? types::find_member(types_, field->type, member_name) : std::nullopt;
  if (!found) return false;
  const uint32_t last_bit =
      found->offset_bits + (found->bit_size ? found->bit_size : type_of(found->type).size_bytes * 8);
  const uint32_t first_byte = found->offset_bits / 8;
  if (!knows_bytes(field->recipe.place, first_byte, (last_bit + 7) / 8 - first_byte)) return false;
  fact(base).field = &*field;
  fact(base).type = field->type;
  return true;
}

}  // namespace espy::check
