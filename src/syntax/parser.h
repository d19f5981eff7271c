// parse: text to tree.
//
// Total: never throws, never stops at the first mistake. What cannot be parsed becomes a diagnostic and an `ErrorExpr`,
// and parsing goes on at the next statement or action.
#pragma once

#include "source/diagnostic.h"
#include "syntax/ast.h"
#include "syntax/preprocess.h"

namespace espy::syntax {

// What is known before the first line: macros of headers that are included.
struct Prelude {
  std::vector<CDefinition> definitions;
  bool has_btf = true;  // BPFTRACE_HAVE_BTF is defined
};

// The macros that `prelude` defines.
MacroBodies macro_bodies(const Prelude& prelude);

Ast parse(const source::Sources& sources, source::SourceId source, source::Diagnostics& diagnostics,
          const Prelude& prelude = {});

// The same, with the nodes added to the tables of `whole`; only what stands at the top level is returned.
Ast parse_part(const source::Sources& sources, source::SourceId source, Ast& whole, source::Diagnostics& diagnostics,
               const Prelude& prelude = {});

// The whole of `source` as one expression, its nodes added to `ast`: the body of a #define.
ExprId parse_expression(const source::Sources& sources, source::SourceId source, Ast& ast,
                        source::Diagnostics& diagnostics);

// The same for a type.
TypeNameId parse_type(const source::Sources& sources, source::SourceId source, Ast& ast,
                      source::Diagnostics& diagnostics);

}  // namespace espy::syntax
