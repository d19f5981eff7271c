#include "tool/tool_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/strings.h"
#include "source/source.h"
#include "syntax/parser.h"

namespace espy::tool {

// ---- The head of a script

namespace {

// The lines of the comment, without the slashes and one blank.
std::vector<std::string_view> head_lines(std::string_view script) {
  std::vector<std::string_view> out;
  for (std::string_view line : split(script, '\n')) {
    if (out.empty() && line.starts_with("#!")) continue;
    if (!line.starts_with("//")) break;
    line.remove_prefix(2);
    if (line.starts_with(' ')) line.remove_prefix(1);
    out.push_back(line);
  }
  return out;
}

bool is_parameter(std::string_view word) {
  const auto is_capital = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return !word.empty() && word[0] >= 'A' && word[0] <= 'Z' && std::ranges::all_of(word, is_capital);
}

// "[-- --failed]" is how the script's file takes what the tool takes as "[--failed]".
std::string without_dashes(std::string_view arguments) {
  std::string out(arguments);
  if (const size_t at = out.find("-- "); at != out.npos) out.erase(at, 3);
  return out;
}

constexpr std::string_view kNumbers[] = {"INTERVAL", "SECONDS", "COUNT", "HZ", "PORT", "PID", "N"};

}  // namespace

std::optional<ToolHead> tool_head(std::string_view script) {
  const std::vector<std::string_view> lines = head_lines(script);
  ToolHead out;
  if (lines.empty()) return std::nullopt;
  const size_t dash = lines[0].find(" - ");
  if (dash == std::string_view::npos || lines[0].find(' ') != dash) return std::nullopt;
  out.name = lines[0].substr(0, dash);
  out.sentence = lines[0].substr(dash + 3);
  bool has_usage = false;
  for (const std::string_view line : std::span(lines).subspan(1)) {
    std::string_view call = trim(line);
    const bool is_call = !has_usage && line.starts_with("  ") && call.starts_with(out.name);
    if (is_call) call.remove_prefix(out.name.size());
    if (is_call && call.starts_with(".bt")) call.remove_prefix(3);
    if (is_call && (call.empty() || call[0] == ' ')) {
      has_usage = true;
      out.arguments = without_dashes(trim(call));
    } else if (has_usage || !line.empty() || !out.rest.empty()) {
      out.rest += fmt::format("{}\n", line);
    }
  }
  if (!has_usage) return std::nullopt;
  for (std::string_view word : split(out.arguments, ' ')) {
    while (word.starts_with('[')) word.remove_prefix(1);
    while (word.ends_with(']') || word.ends_with('.')) word.remove_suffix(1);
    if (is_parameter(word)) out.parameters.emplace_back(word);
  }
  return out;
}

Status check_parameters(const ToolHead& head, std::span<const std::string> words) {
  const std::string hint = fmt::format("usage: {}{}{}", head.name, head.arguments.empty() ? "" : " ", head.arguments);
  if (words.size() > head.parameters.size())
    return fail(head.parameters.empty() ? fmt::format("{} takes no argument `{}`", head.name, words[0])
                                        : fmt::format("{} takes {} arguments at most, and `{}` is one more", head.name,
                                                      head.parameters.size(), words[head.parameters.size()]),
                0, hint);
  for (size_t i = 0; i < words.size(); ++i) {
    if (std::ranges::find(kNumbers, head.parameters[i]) == std::end(kNumbers)) continue;
    const auto number = parse_int(words[i]);
    if (!number || *number < 1)
      return fail(fmt::format("{} takes a whole number from 1 on, not `{}`", head.parameters[i], words[i]), 0, hint);
  }
  return {};
}

// ---- getopt() in a tree

namespace {

constexpr std::string_view kOptionCall = "getopt";

// The default as text, as check::ScriptOption::initial; nullopt if it is not a literal.
std::optional<std::string> literal_text(const syntax::Ast& ast, syntax::ExprId id) {
  if (const auto* text = ast.get<syntax::StringLiteral>(id)) return "\"" + text->value + "\"";
  if (const auto* number = ast.get<syntax::IntegerLiteral>(id)) return fmt::format("{}", number->value);
  if (const auto* truth = ast.get<syntax::BoolLiteral>(id)) return truth->value ? "true" : "false";
  if (const auto* unary = ast.get<syntax::Unary>(id); unary != nullptr && unary->op == syntax::UnaryOp::kNegate)
    if (const auto number = literal_text(ast, unary->operand)) return "-" + *number;
  return std::nullopt;
}

}  // namespace

std::vector<check::ScriptOption> script_options(std::string_view script) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  const syntax::Ast ast = syntax::parse(sources, sources.add("script", std::string(script)), diagnostics);
  std::vector<check::ScriptOption> out;
  for (const syntax::Expr& expr : ast.exprs) {
    const auto* call = std::get_if<syntax::Call>(&expr.node);
    if (call == nullptr || call->name != kOptionCall || call->arguments.empty()) continue;
    const auto* name = ast.get<syntax::StringLiteral>(call->arguments[0]);
    if (name == nullptr) continue;
    check::ScriptOption option{name->value, "false", {}};
    if (call->arguments.size() > 1) {
      const auto initial = literal_text(ast, call->arguments[1]);
      if (!initial) continue;
      option.initial = *initial;
    }
    if (call->arguments.size() > 2)
      if (const auto* doc = ast.get<syntax::StringLiteral>(call->arguments[2])) option.doc = doc->value;
    const auto known = std::ranges::find(out, option.name, &check::ScriptOption::name);
    if (known == out.end())
      out.push_back(std::move(option));
    else if (known->doc.empty())
      known->doc = option.doc;
  }
  return out;
}

Status check_value(const check::ScriptOption& option, std::string_view value) {
  constexpr std::string_view kTruths[] = {"", "true", "false", "1", "0"};
  if (option.is_switch()) {
    if (std::ranges::find(kTruths, to_lower(value)) != std::end(kTruths)) return {};
    return fail(fmt::format("--{} takes true or false, not `{}`", option.name, value));
  }
  if (option.initial.starts_with('"') || parse_int(value)) return {};
  return fail(fmt::format("--{} takes a number, not `{}`", option.name, value), 0,
              option.doc.empty() ? "" : fmt::format("--{}=N: {}", option.name, option.doc));
}

}  // namespace espy::tool
