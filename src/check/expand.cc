#include "check/expand.h"

namespace espy::check {

void expand_macros(syntax::Ast& ast, source::Sources&, source::Diagnostics& diagnostics) {
  for (const syntax::Macro& macro : ast.macros)
    diagnostics.error("not-yet-supported", macro.name_span, "macros are not supported yet");
}

}  // namespace espy::check
