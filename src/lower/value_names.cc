#include "lower/value_names.h"

#include <string_view>

#include "spec/builtin.h"
#include "syntax/print.h"

namespace espy::lower {

std::string value_name(const syntax::Ast& ast, const check::Unit& unit, syntax::ExprId expr) {
  const auto* call = ast.get<syntax::Call>(expr);
  const spec::Builtin* builtin = call ? unit.fact(expr).builtin : nullptr;
  if (builtin && builtin->reads_text_at && !call->arguments.empty()) return value_name(ast, unit, call->arguments[0]);
  std::string text = syntax::Printer(ast).expr(expr);
  for (const std::string_view prefix : {"args.", "args->", "$"}) {
    const size_t at = text.find(prefix);
    if (at == 0 || (at == 1 && text[0] == '*')) text.erase(at, prefix.size());
  }
  return text;
}

}  // namespace espy::lower
