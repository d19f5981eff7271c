#include "lsp/script_analysis.h"

#include <algorithm>

#include "syntax/lexer.h"

namespace espy::lsp {
namespace {

bool covers(const source::Span& span, source::SourceId script, uint32_t offset) {
  return span.source == script && span.begin <= offset && offset <= span.end;
}

const check::Unit* unit_with(const Analysis& analysis, syntax::ExprId expr) {
  for (const check::Unit& unit : analysis.checked.units)
    if (const check::ExprFact& fact = unit.fact(expr);
        fact.type.valid() || fact.builtin || fact.map.valid() || fact.variable.valid() || fact.function >= 0)
      return &unit;
  return nullptr;
}

}  // namespace

std::optional<Found> find_expression(const Analysis& analysis, uint32_t offset) {
  std::optional<Found> best;
  uint32_t best_bytes = UINT32_MAX;
  for (const syntax::ExprId id : analysis.ast().exprs.ids()) {
    const source::Span span = analysis.ast()[id].span;
    if (!covers(span, analysis.script, offset)) continue;
    const uint32_t bytes = span.end - span.begin;
    const check::Unit* unit = unit_with(analysis, id);
    // Of the copies that macro calls make of one text, one that was checked.
    if (bytes > best_bytes || (bytes == best_bytes && best && (best->unit || !unit))) continue;
    best = Found{id, unit};
    best_bytes = bytes;
  }
  return best;
}

const check::Unit* find_unit(const Analysis& analysis, uint32_t offset) {
  for (const check::Unit& unit : analysis.checked.units) {
    if (unit.action && covers(unit.action->span, analysis.script, offset)) return &unit;
    if (unit.function && covers(unit.function->span, analysis.script, offset)) return &unit;
  }
  return nullptr;
}

const syntax::TypeName* find_type_name(const Analysis& analysis, uint32_t offset) {
  const syntax::TypeName* best = nullptr;
  for (const syntax::TypeNameId id : analysis.ast().type_names.ids()) {
    const syntax::TypeName& type = analysis.ast()[id];
    if (type.span.source == analysis.script && type.span.begin <= offset && offset <= type.span.end &&
        !type.name.empty())
      best = &type;
  }
  return best;
}

types::TypeId type_of(const Analysis& analysis, syntax::ExprId expr) {
  for (const check::Unit& unit : analysis.checked.units)
    if (const types::TypeId type = unit.fact(expr).type; type.valid()) return type;
  return {};
}

std::optional<Word> word_at(std::string_view text, uint32_t offset) {
  const auto is_part = [&](size_t at) { return syntax::is_word(text[at]); };
  size_t begin = std::min<size_t>(offset, text.size());
  size_t end = begin;
  while (begin > 0 && is_part(begin - 1)) --begin;
  while (end < text.size() && is_part(end)) ++end;
  if (begin > 0 && (text[begin - 1] == '$' || text[begin - 1] == '@')) --begin;
  if (begin == end) return std::nullopt;
  return Word{std::string(text.substr(begin, end - begin)), static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

}  // namespace espy::lsp
