#include "trace/target_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/strings.h"
#include "check/check_passes.h"
#include "symbols/demangle.h"
#include "syntax/parser.h"

namespace espy::trace {

using syntax::BinaryOp;
using syntax::ExprId;
using syntax::StmtId;

namespace {

// What to type for the returns of a target.
std::string how_to_follow(const TraceTarget& target) {
  std::string list;
  for (const auto* items : {&target.filters, &target.values})
    for (const TraceItem& item : *items) list += item.text + ", ";
  return fmt::format("'{}({}return)'", target.place, list);
}

// Copies an expression of names, members, elements and numbers; nullopt for others.
std::optional<ExprId> copy_of(syntax::Ast& ast, ExprId id) {
  syntax::Expr out = ast[id];
  const auto copy = [&](ExprId& part) {
    const std::optional<ExprId> copied = copy_of(ast, part);
    if (copied) part = *copied;
    return copied.has_value();
  };
  bool is_plain = std::holds_alternative<syntax::Name>(out.node) ||
                  std::holds_alternative<syntax::Variable>(out.node) ||
                  std::holds_alternative<syntax::IntegerLiteral>(out.node);
  if (auto* access = std::get_if<syntax::Access>(&out.node)) is_plain = copy(access->base);
  if (auto* unary = std::get_if<syntax::Unary>(&out.node))
    is_plain = unary->op == syntax::UnaryOp::kDereference && copy(unary->operand);
  if (auto* index = std::get_if<syntax::Index>(&out.node))
    is_plain = copy(index->base) && std::ranges::all_of(index->indices, copy);
  return is_plain ? std::optional(ast.exprs.add(std::move(out))) : std::nullopt;
}

std::string argument_hint(const TraceScript::Part& part, std::string_view wrong) {
  const std::vector<std::string_view> known(part.arguments.begin(), part.arguments.end());
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean `{}`?", near);
  if (known.empty()) return "the names of its arguments are not known";
  return fmt::format("its arguments are {}", join(part.arguments, ", "));
}

}  // namespace

source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script, const source::Sources& sources) {
  for (const TraceScript::Part& part : script.parts) {
    if (std::ranges::find(part.typed, diagnostic.span.source) == part.typed.end()) continue;
    diagnostic.notes.clear();  // they are about other places of the script
    if (diagnostic.id == "unknown-name") diagnostic.hint = argument_hint(part, sources.text(diagnostic.span));
    break;
  }
  return diagnostic;
}

int run_target_script(Result<TraceScript> script, const run::RunOptions& options, run::Environment& environment,
                      const run::PrepareSession& prepare) {
  if (!script) return run::complain(script.error());
  run::RunOptions of_script = options;
  of_script.shown_diagnostic = [&](const source::Diagnostic& diagnostic) {
    return at_target(diagnostic, *script, environment.sources);
  };
  if (environment.diagnostics.has_errors()) {
    run::report(environment.diagnostics, environment.sources, of_script);
    return EXIT_FAILURE;
  }
  if (!options.output.hides_warnings)
    for (const std::string& sentence : script->left_out)
      std::fputs(fmt::format("WARNING: {}\n", printable_line(sentence)).c_str(), stderr);
  return run::run_script(std::move(script->script), of_script, environment, prepare);
}

TraceScript::Part TargetScript::begin_target(const TraceTarget& target) {
  TraceScript::Part out;
  target_ = e_.sources.add("target", target.text);
  out.typed.push_back(target_);
  build_.span = {target_, 0, static_cast<uint32_t>(target.place.size())};
  return out;
}

void TargetScript::take_arguments(const std::vector<TraceProbes>& groups, TraceScript::Part& part) {
  for (const TraceProbes& probes : groups)
    for (const TraceArgument& argument : probes.arguments)
      if (std::ranges::find(part.arguments, argument.name) == part.arguments.end())
        part.arguments.push_back(argument.name);
  arguments_ = part.arguments;
}

void TargetScript::note_hidden(const TraceTarget& target, const TraceProbes& probes) {
  for (const std::string& name : probes.hidden)
    left_out_.push_back(
        name.empty() ? fmt::format("{}: an argument without a name is not shown", target.text)
                     : fmt::format("{}: of the arguments named `{}` only the first is shown", target.text, name));
  if (!probes.why_no_result.empty())
    left_out_.push_back(fmt::format("{}: {} is not shown: {}", target.text,
                                    probes.name.empty() ? "the result of some functions" : "the result",
                                    probes.why_no_result));
}

void TargetScript::note_unsafe(const TraceTarget& target, const std::vector<TraceProbes>& groups) {
  size_t count = 0;
  std::string first;
  for (const TraceProbes& probes : groups) {
    if (count == 0 && !probes.unsafe.empty()) first = probes.unsafe.front();
    count += probes.unsafe.size();
  }
  if (count == 0) return;
  first = symbols::demangle(first, symbols::DemangleStyle::kName);
  left_out_.push_back(fmt::format(
      "{}: {}; {} follows {}", target.text,
      count == 1 ? fmt::format("the return of `{}` is not followed: an exception that passes it would end "
                               "the program",
                               first)
                 : fmt::format("the returns of {} functions, as of `{}`, are not followed: an exception that "
                               "passes them would end the program",
                               count, first),
      how_to_follow(target), count == 1 ? "it" : "them"));
}

tl::unexpected<Error> TargetScript::fail_unsafe(const TraceTarget& target) {
  return fail(fmt::format("`{}`: an exception that passes a function whose return is followed would end the program",
                          target.text),
              0, fmt::format("{} follows it nevertheless", how_to_follow(target)));
}

void TargetScript::check_syntax(const TypedValue& typed) {
  syntax::Ast ignored;
  parse(typed, ignored, e_.diagnostics);
}

ExprId TargetScript::parse(const TypedValue& typed, syntax::Ast& ast, source::Diagnostics& diagnostics) {
  const auto [copy, is_new] = copies_.try_emplace({typed.source.index, typed.item.offset});
  if (is_new) copy->second = e_.sources.add("", std::string(typed.item.offset, ' ') + with_result(typed.item.text));
  const size_t first = ast.exprs.size(), first_type = ast.type_names.size(), first_stmt = ast.stmts.size();
  source::Diagnostics found;
  const ExprId out = syntax::parse_expression(e_.sources, copy->second, ast, found);
  const auto move = [&](source::Span& span) { span.source = typed.source; };
  for (auto i = static_cast<uint32_t>(first); i < ast.exprs.size(); ++i) {
    syntax::Expr& each = ast.exprs[ExprId{i}];
    move(each.span);
    if (auto* call = std::get_if<syntax::Call>(&each.node)) move(call->name_span);
    if (auto* access = std::get_if<syntax::Access>(&each.node)) move(access->name_span);
    if (auto* binary = std::get_if<syntax::Binary>(&each.node)) move(binary->op_span);
    if (auto* offset = std::get_if<syntax::Offsetof>(&each.node)) move(offset->path_span);
  }
  for (auto i = static_cast<uint32_t>(first_type); i < ast.type_names.size(); ++i)
    move(ast.type_names[syntax::TypeNameId{i}].span);
  for (auto i = static_cast<uint32_t>(first_stmt); i < ast.stmts.size(); ++i) move(ast.stmts[StmtId{i}].span);
  for (source::Diagnostic each : found.all()) {
    move(each.span);
    each.notes.clear();
    diagnostics.add(std::move(each));
  }
  return out;
}

bool TargetScript::is_named(const TypedValue& typed, const std::string& name) {
  syntax::Ast ast;
  source::Diagnostics ignored;
  bool out = false;
  check::walk(ast, parse(typed, ast, ignored), [&](ExprId id) {
    const auto* word = ast.get<syntax::Name>(id);
    out |= word != nullptr && word->name == name;
  });
  return out;
}

ExprId TargetScript::expression(const TypedValue& typed, const std::vector<std::string>& names) {
  syntax::Ast& ast = script_.ast;
  source::Diagnostics reported;
  const ExprId out = parse(typed, ast, reported);
  std::vector<ExprId> found;
  check::walk(ast, out, [&](ExprId id) {
    const auto* word = ast.get<syntax::Name>(id);
    if (word != nullptr && std::ranges::find(names, word->name) != names.end()) found.push_back(id);
  });
  for (const ExprId id : found) {
    std::string name = "$" + ast.get<syntax::Name>(id)->name;
    ast.exprs[id].node = syntax::Variable{std::move(name)};
  }
  read_compared_texts(out);
  return out;
}

// `name == "x"` compares `name` if it is an array of characters, and `str(name)` if it is a pointer, which only the
// checker knows: if comptime (is_ptr(name)) { str(name) } else { name }.
void TargetScript::read_compared_texts(ExprId id) {
  syntax::Ast& ast = script_.ast;
  std::vector<ExprId> comparisons;
  check::walk(ast, id, [&](ExprId each) {
    const auto* binary = ast.get<syntax::Binary>(each);
    if (binary != nullptr && (binary->op == BinaryOp::kEqual || binary->op == BinaryOp::kNotEqual))
      comparisons.push_back(each);
  });
  for (const ExprId comparison : comparisons) {
    const auto read = [&](ExprId value, ExprId text) -> ExprId {
      bool names_argument = false;
      check::walk(ast, value, [&](ExprId each) { names_argument |= ast.get<syntax::Variable>(each) != nullptr; });
      if (ast.get<syntax::StringLiteral>(text) == nullptr || !names_argument) return value;
      const auto asked = copy_of(ast, value), pointer = copy_of(ast, value);
      if (!asked || !pointer) return value;
      const syntax::Build build{ast, ast[value].span};
      const ExprId then = build.add(syntax::Block{{}, build.call("str", {*pointer})});
      const ExprId otherwise = build.add(syntax::Block{{}, value});
      return build.add(syntax::If{build.call("is_ptr", {*asked}), then, otherwise, true});
    };
    const syntax::Binary before = *ast.get<syntax::Binary>(comparison);
    syntax::Binary after = before;
    after.left = read(before.left, before.right);
    after.right = read(before.right, before.left);
    ast.exprs[comparison].node = after;
  }
}

bool TargetScript::has_all_named(const TraceTarget& target, const TraceProbes& probes,
                                 const std::vector<std::string>& known) {
  const auto has = [&](const std::string& name) {
    return std::ranges::find(probes.arguments, name, &TraceArgument::name) != probes.arguments.end();
  };
  const auto names = [&](const std::vector<TraceItem>& items, const std::string& name) {
    return std::ranges::any_of(items, [&](const TraceItem& item) { return is_named({target_, item}, name); });
  };
  if (!target.results.empty() && !has_result(probes)) return false;
  return std::ranges::all_of(known, [&](const std::string& name) {
    return has(name) || (!names(target.values, name) && !names(target.filters, name));
  });
}

// The type of a cast: a number, or a pointer to what has a name.
syntax::TypeName TargetScript::type_name(types::TypeId id) const {
  const types::Type& type = e_.types[id];
  syntax::TypeName out;
  if (type.kind == types::Kind::kPointer) {
    out = type_name(type.element);
    out.suffixes.push_back({.is_pointer = true, .count = {}});
  } else if (type.kind == types::Kind::kStruct || type.kind == types::Kind::kEnum) {
    out.tag = type.kind == types::Kind::kEnum ? syntax::TypeName::Tag::kEnum
              : type.is_union                 ? syntax::TypeName::Tag::kUnion
                                              : syntax::TypeName::Tag::kStruct;
    out.name = type.name;
  } else {
    out.name = types::to_string(e_.types, id);
  }
  return out;
}

ExprId TargetScript::read(const TraceValue& value) const {
  const ExprId word = build_.name(value.word);
  const ExprId out = value.member.empty() ? word : build_.member(word, value.member);
  if (!value.cast) return out;
  const types::Type& type = e_.types[value.cast];
  syntax::TypeName name = type_name(value.cast);
  if (type.char_like && !type.is_signed) name.name = "uint8";
  return name.name == "uint64" && name.suffixes.empty() ? out : build_.cast(std::move(name), out);
}

void TargetScript::read_arguments(const TraceProbes& probes, const Values& values, const Statements& statements,
                                  Statements& body) {
  const std::set<std::string> used = variables_of(values, statements);
  for (const TraceArgument& argument : probes.arguments)
    if (used.contains("$" + argument.name))
      body.push_back(build_.assign(variable(argument.name), read(argument.value)));
}

std::set<std::string> TargetScript::variables_of(const Values& values, const Statements& statements) const {
  std::set<std::string> out;
  const auto visit = [&](ExprId id) {
    if (const auto* found = script_.ast.get<syntax::Variable>(id)) out.insert(found->name);
  };
  for (const ExprId each : values) check::walk(script_.ast, each, visit);
  for (const StmtId each : statements) check::walk(script_.ast, each, visit);
  return out;
}

std::vector<std::string> TargetScript::names_of(const TraceProbes& probes) {
  std::vector<std::string> out;
  for (const TraceArgument& argument : probes.arguments) out.push_back(argument.name);
  return out;
}

ExprId TargetScript::all_hold(const Values& conditions) const {
  ExprId out = conditions.front();
  for (size_t i = 1; i < conditions.size(); ++i) out = build_.binary(BinaryOp::kLogicalAnd, out, conditions[i]);
  return out;
}

Statements TargetScript::only_if(const Values& conditions, Statements then) const {
  if (conditions.empty()) return then;
  return {build_.when(all_hold(conditions), std::move(then))};
}

void TargetScript::add_action(const TracePlace& place, Statements body) {
  bool reads_types = false;  // what debug information tells
  for (const StmtId each : body)
    check::walk(script_.ast, each, [&](ExprId id) {
      const auto* word = script_.ast.get<syntax::Name>(id);
      reads_types |= word != nullptr && (word->name == "args" || word->name == kResult);
    });
  std::vector<syntax::AttachPoint> points = place.points;
  for (syntax::AttachPoint& point : points) {
    point.span = point.provider.span = build_.span;
    for (syntax::AttachPart& part : point.parts) part.span = build_.span;
  }
  build_.action(std::move(points), std::move(body));
  script_.probes.push_back(reads_types ? place.typed : place.plain);
}

ExprId TargetScript::stack_pointer() const {
  const kernel::Arch& arch = e_.kernel->arch();
  return build_.call("reg", {build_.text(kernel::register_name(arch, arch.stack_pointer_offset))});
}

std::string TargetScript::unused_name(std::string out) const {
  while (std::ranges::find(arguments_, out) != arguments_.end()) out += '_';
  return out;
}

}  // namespace espy::trace
