#include "lsp/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"
#include "lsp/hover.h"
#include "syntax/lexer.h"

namespace espy::lsp {

namespace {

using syntax::Token;
using syntax::TokenKind;

bool is_opening(TokenKind kind) {
  return kind == TokenKind::kLeftBrace || kind == TokenKind::kLeftParen || kind == TokenKind::kLeftBracket;
}
bool is_closing(TokenKind kind) {
  return kind == TokenKind::kRightBrace || kind == TokenKind::kRightParen || kind == TokenKind::kRightBracket;
}

// The tokens that begin before the offset.
std::vector<Token> tokens_before(std::string_view text, uint32_t offset) {
  std::vector<Token> out;
  syntax::Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd && token.begin < offset; token = lexer.next())
    out.push_back(token);
  return out;
}

// The tokens that open what is not closed, as indexes, innermost last.
std::vector<size_t> open_tokens(const std::vector<Token>& tokens) {
  std::vector<size_t> out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (is_opening(tokens[i].kind)) out.push_back(i);
    if (is_closing(tokens[i].kind) && !out.empty()) out.pop_back();
  }
  return out;
}

bool has_open_brace(const std::vector<Token>& tokens) {
  for (const size_t each : open_tokens(tokens))
    if (tokens[each].kind == TokenKind::kLeftBrace) return true;
  return false;
}

// The begin of the attach point that ends at the offset; nullopt in a predicate: behind a slash that follows a space.
std::optional<uint32_t> begin_of_attach_point(std::string_view text, const std::vector<Token>& tokens,
                                              uint32_t offset) {
  uint32_t begin = 0;
  for (const Token& token : tokens)
    if (token.end <= offset && (token.kind == TokenKind::kRightBrace || token.kind == TokenKind::kComma))
      begin = token.end;
  if (const size_t line = text.substr(0, offset).rfind('\n'); line != text.npos && line + 1 > begin)
    begin = static_cast<uint32_t>(line + 1);
  while (begin < offset && syntax::is_space(text[begin])) ++begin;
  const std::string_view typed = text.substr(begin, offset - begin);
  const bool is_predicate = typed.starts_with('/') || typed.find(" /") != typed.npos;
  return is_predicate || typed.find(' ') != typed.npos ? std::nullopt : std::optional(begin);
}

bool is_inside(const Token& token, uint32_t offset) {
  if (token.kind == TokenKind::kUnterminatedString || token.kind == TokenKind::kUnterminatedComment) return true;
  return offset < token.end && (token.kind == TokenKind::kString || token.kind == TokenKind::kCharacter);
}

// A line comment has no token.
bool is_in_comment(std::string_view text, uint32_t last_end, uint32_t offset) {
  const std::string_view gap = text.substr(last_end, offset > last_end ? offset - last_end : 0);
  const size_t comment = gap.rfind("//");
  const size_t block = gap.rfind("/*");
  return (comment != gap.npos && gap.find('\n', comment) == gap.npos) ||
         (block != gap.npos && gap.find("*/", block) == gap.npos);
}

}  // namespace

Place place_of(std::string_view text, uint32_t offset) {
  const std::vector<Token> tokens = tokens_before(text, offset);
  const bool is_top = !has_open_brace(tokens);
  if (!tokens.empty() && is_inside(tokens.back(), offset)) return {};
  if (is_in_comment(text, tokens.empty() ? 0 : tokens.back().end, offset)) return {};
  if (is_top)
    if (const auto begin = begin_of_attach_point(text, tokens, offset)) return {Place::Kind::kAttachPoint, *begin};
  uint32_t begin = offset;
  while (begin > 0 && syntax::is_word(text[begin - 1])) --begin;
  if (begin > 0 && text[begin - 1] == '@') return {Place::Kind::kMap, begin - 1};
  if (begin > 0 && text[begin - 1] == '$') return {Place::Kind::kVariable, begin - 1};
  if (begin < offset && syntax::is_digit(text[begin])) return {};
  const std::string_view before = text.substr(0, begin);
  if (before.ends_with("->") || (before.ends_with('.') && !before.ends_with("..")))
    return {Place::Kind::kMember, begin};
  return {Place::Kind::kName, begin};
}

std::optional<OpenCall> open_call(std::string_view text, uint32_t offset) {
  const std::vector<Token> tokens = tokens_before(text, offset);
  const std::vector<size_t> open = open_tokens(tokens);
  for (size_t i = open.size(); i-- > 0;) {
    const size_t at = open[i];
    if (tokens[at].kind == TokenKind::kLeftBrace) return std::nullopt;
    if (tokens[at].kind != TokenKind::kLeftParen || at == 0 || tokens[at - 1].kind != TokenKind::kIdentifier) continue;
    OpenCall out = {std::string(text.substr(tokens[at - 1].begin, tokens[at - 1].end - tokens[at - 1].begin))};
    int depth = 0;
    for (size_t each = at + 1; each < tokens.size(); ++each) {
      depth += is_opening(tokens[each].kind) ? 1 : is_closing(tokens[each].kind) ? -1 : 0;
      if (depth == 0 && tokens[each].kind == TokenKind::kComma) ++out.argument;
    }
    return out;
  }
  return std::nullopt;
}

namespace {

using source::Span;
using syntax::TokenKind;

Json location(const Document& document, Span span) {
  const source::Source& source = document.analysis->sources[span.source];
  if (span.source == document.analysis->script)
    return {{"uri", document.uri}, {"range", range_of(document.text, span.begin, span.end)}};
  return {{"uri", uri_of(source.name)}, {"range", range_of(Text(source.text), span.begin, span.end)}};
}

Json type_location(const Analysis& analysis, const std::string& name) {
  if (name.empty() || !analysis.kernel.c_definition(name)) return nullptr;
  const Json start = {{"line", 0}, {"character", 0}};
  return {{"uri", std::string(kTypeScheme) + name + ".c"}, {"range", {{"start", start}, {"end", start}}}};
}

// The macro or function that a word names.
std::optional<Span> callable(const Analysis& analysis, const std::string& word) {
  for (const syntax::Macro& macro : analysis.ast().macros)
    if (macro.name == word) return macro.name_span;
  for (const syntax::Function& function : analysis.ast().functions)
    if (function.name == word) return function.name_span;
  return std::nullopt;
}

std::optional<Span> declaration_of_variable(const Found& found) {
  const check::ExprFact* fact = found.fact();
  if (!fact || !fact->variable.valid()) return std::nullopt;
  return found.unit->variables[fact->variable].span;
}

}  // namespace

Json definition(const Document& document, uint32_t offset) {
  if (!document.analysis) return nullptr;
  const Analysis& analysis = *document.analysis;
  const auto word = word_at(document.text.bytes(), offset);
  if (word)
    if (const auto span = callable(analysis, word->text)) return location(document, *span);
  if (const syntax::TypeName* type = find_type_name(analysis, offset))
    if (Json found = type_location(analysis, type->name); !found.is_null()) return found;
  const auto found = find_expression(analysis, offset);
  if (!found || !found->fact()) return nullptr;
  if (const auto span = declaration_of_variable(*found)) return location(document, *span);
  const check::ExprFact& fact = *found->fact();
  if (fact.map.valid()) return location(document, analysis.checked.maps[fact.map].span);
  types::TypeId type = fact.type;
  while (type.valid() && analysis.types[type].kind == types::Kind::kPointer) type = analysis.types[type].element;
  return type.valid() ? type_location(analysis, analysis.types[type].name) : Json();
}

std::string type_document(const Analysis& analysis, std::string_view uri) {
  if (!uri.starts_with(kTypeScheme) || !uri.ends_with(".c")) return "";
  const std::string_view name = uri.substr(kTypeScheme.size(), uri.size() - kTypeScheme.size() - 2);
  return analysis.kernel.c_definition(name).value_or("") + "\n";
}

namespace {

// The spans of all that is written like the word and means the same.
class Uses {
 public:
  Uses(const Document& document, uint32_t offset) : document_(document), analysis_(*document.analysis) {
    const auto word = word_at(document.text.bytes(), offset);
    if (!word) return;
    word_ = word->text;
    if (word_.starts_with('@') || callable(analysis_, word_)) {
      add_tokens();
    } else if (word_.starts_with('$')) {
      add_variable(offset);
    }
  }

  const std::string& word() const { return word_; }
  const std::set<std::pair<uint32_t, uint32_t>>& spans() const { return spans_; }
  bool is_in_macro() const { return is_in_macro_; }

 private:
  // Maps, functions and macros have one scope, the script.
  void add_tokens() {
    const std::string& text = document_.text.bytes();
    syntax::Lexer lexer(text);
    for (syntax::Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
      const bool is_name = token.kind == TokenKind::kMap || token.kind == TokenKind::kIdentifier;
      if (is_name && std::string_view(text).substr(token.begin, token.end - token.begin) == word_)
        spans_.insert({token.begin, token.end});
    }
  }

  void add_variable(uint32_t offset) {
    const std::optional<Span> declared = find_declaration(offset);
    if (!declared) return;
    for (const check::Unit& unit : analysis_.checked.units)
      for (const check::VariableId id : unit.variables.ids())
        if (unit.variables[id].name == word_ && unit.variables[id].span == *declared) add_uses(unit, id);
    add_span(*declared);
  }

  // By a use of the variable, or by the place of its declaration.
  std::optional<Span> find_declaration(uint32_t offset) const {
    if (const auto found = find_expression(analysis_, offset))
      if (const auto span = declaration_of_variable(*found)) return span;
    for (const check::Unit& unit : analysis_.checked.units)
      for (const check::Variable& variable : unit.variables)
        if (variable.name == word_ && variable.span.source == analysis_.script && variable.span.begin <= offset &&
            offset <= variable.span.end)
          return variable.span;
    return std::nullopt;
  }

  void add_uses(const check::Unit& unit, check::VariableId variable) {
    for (const syntax::ExprId id : unit.exprs.ids())
      if (unit.fact(id).variable == variable && analysis_.ast().get<syntax::Variable>(id))
        add_span(analysis_.ast()[id].span);
  }

  // A declaration may be longer than its name: `let $x`.
  void add_span(Span span) {
    if (span.expansion.valid()) is_in_macro_ = true;
    if (span.source != analysis_.script) return;
    const std::string_view text = analysis_.sources.text(span);
    const size_t at = text.find(word_);
    if (at == text.npos) return;
    const auto begin = static_cast<uint32_t>(span.begin + at);
    spans_.insert({begin, begin + static_cast<uint32_t>(word_.size())});
  }

  const Document& document_;
  const Analysis& analysis_;
  std::string word_;
  std::set<std::pair<uint32_t, uint32_t>> spans_;
  bool is_in_macro_ = false;
};

bool is_name(std::string_view text) {
  return !text.empty() && syntax::is_word_start(text[0]) && std::ranges::all_of(text, syntax::is_word);
}

// The word with the sigil of the old one.
Result<std::string> checked_name(const std::string& old_name, std::string new_name) {
  const bool has_sigil = old_name[0] == '$' || old_name[0] == '@';
  if (has_sigil && !new_name.starts_with(old_name[0])) new_name = old_name[0] + new_name;
  if (!is_name(std::string_view(new_name).substr(has_sigil ? 1 : 0)))
    return fail(fmt::format("`{}` is not a name", new_name));
  return new_name;
}

bool is_used(std::string_view text, std::string_view name) {
  syntax::Lexer lexer(text);
  for (syntax::Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next())
    if (text.substr(token.begin, token.end - token.begin) == name) return true;
  return false;
}

}  // namespace

Json references(const Document& document, uint32_t offset) {
  Json out = Json::array();
  if (!document.analysis) return out;
  const Uses uses(document, offset);
  for (const auto& [begin, end] : uses.spans())
    out.push_back({{"uri", document.uri}, {"range", range_of(document.text, begin, end)}});
  return out;
}

Result<Json> rename(const Document& document, uint32_t offset, const std::string& new_name) {
  if (!document.analysis) return fail("the script cannot be checked");
  const Uses uses(document, offset);
  if (uses.spans().empty()) return fail("there is no variable, map, function or macro here");
  if (uses.is_in_macro()) return fail(fmt::format("`{}` is also named by a macro's text", uses.word()));
  const std::string name = TRY(checked_name(uses.word(), new_name));
  if (name != uses.word() && is_used(document.text.bytes(), name))
    return fail(fmt::format("`{}` exists already", name));
  Json edits = Json::array();
  for (const auto& [begin, end] : uses.spans())
    edits.push_back({{"range", range_of(document.text, begin, end)}, {"newText", name}});
  return Json{{"changes", {{document.uri, std::move(edits)}}}};
}

Json symbols(const Document& document) {
  Json out = Json::array();
  if (!document.analysis) return out;
  const Analysis& analysis = *document.analysis;
  enum Symbol : int { kFunction = 12, kEvent = 24 };
  const auto add = [&](const std::string& name, Span whole, Span own, int kind) {
    if (whole.source != analysis.script || own.source != analysis.script || name.empty()) return;
    out.push_back({{"name", name},
                   {"kind", kind},
                   {"range", range_of(document.text, whole.begin, whole.end)},
                   {"selectionRange", range_of(document.text, own.begin, own.end)}});
  };
  for (const syntax::Macro& macro : analysis.ast().macros) add(macro.name, macro.span, macro.name_span, kFunction);
  for (const syntax::Function& function : analysis.ast().functions)
    add(function.name, function.span, function.name_span, kFunction);
  for (const syntax::Action& action : analysis.ast().actions)
    for (const syntax::AttachPoint& point : action.attach_points)
      add(std::string(analysis.sources.text(point.span)), action.span, point.span, kEvent);
  return out;
}

Json inlay_hints(const Document& document) {
  Json out = Json::array();
  if (!document.analysis) return out;
  const Analysis& analysis = *document.analysis;
  std::set<uint32_t> places;
  const auto add = [&](const std::string& name, Span span, const std::string& type) {
    if (span.source != analysis.script || span.expansion.valid()) return;
    const auto word = word_at(document.text.bytes(), span.begin + 1);
    if (!word || word->text != name || !places.insert(word->end).second) return;
    out.push_back({{"position", json_of(document.text.position(word->end))}, {"label", ": " + type}, {"kind", 1}});
  };
  for (const check::Unit& unit : analysis.checked.units)
    for (const check::Variable& variable : unit.variables)
      if (variable.type.valid()) add(variable.name, variable.span, types::to_string(analysis.types, variable.type));
  for (const check::CheckedMap& map : analysis.checked.maps)
    if (map.value.valid()) add(map.name, map.span, types::to_string(analysis.types, map.value));
  return out;
}

namespace {

constexpr size_t kMostLists = 32;

}  // namespace

// `head` is "kprobe", or "uprobe:/bin/bash".
const std::vector<std::string>& ProbeNames::list(const std::string& head) {
  if (const auto known = lists_.find(head); known != lists_.end()) return known->second;
  if (lists_.size() >= kMostLists) lists_.clear();
  std::vector<std::string>& out = lists_[head];
  const size_t colon = head.find(':');
  const spec::Provider* provider = services_.registry.find_provider(head.substr(0, colon));
  if (!provider || !provider->list) return out;
  std::vector<std::string> parts;
  if (colon != head.npos) parts = {head.substr(colon + 1), "*"};
  out = services_.list(*provider, parts);
  // As the user spells the provider: lists have its name, not its alias.
  const std::string name(provider->name);
  for (std::string& each : out)
    if (each.starts_with(name + ":")) each = head.substr(0, colon) + each.substr(name.size());
  std::ranges::sort(out);
  return out;
}

bool ProbeNames::list_ahead() {
  if (lists_.size() >= kMostLists) return false;
  for (const spec::Provider* provider : services_.registry.providers()) {
    if (!provider->list || provider->needs_target_to_list || lists_.contains(provider->name)) continue;
    list(std::string(provider->name));
    return true;
  }
  return false;
}

std::vector<std::string> ProbeNames::with_prefix(const std::string& prefix, size_t most) {
  const size_t colon = prefix.find(':');
  if (colon == prefix.npos) return {};
  const spec::Provider* provider = services_.registry.find_provider(prefix.substr(0, colon));
  if (!provider) return {};
  size_t end_of_head = colon;
  if (provider->needs_target_to_list) end_of_head = prefix.find(':', colon + 1);
  if (end_of_head == prefix.npos) return {};
  const std::vector<std::string>& all = list(prefix.substr(0, end_of_head));
  std::vector<std::string> out;
  for (auto each = std::ranges::lower_bound(all, prefix); each != all.end() && each->starts_with(prefix); ++each) {
    if (out.size() == most) break;
    out.push_back(*each);
  }
  return out;
}

}  // namespace espy::lsp
