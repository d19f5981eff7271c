// Parses a script into a tree.
//
// Total: it never throws and does not stop at the first error. Text that does not parse yields a diagnostic and an
// `ErrorExpr`; parsing continues at the next statement or action.
#pragma once

#include <vector>

#include "source/diagnostic.h"
#include "syntax/ast.h"
#include "syntax/c_constant.h"
#include "syntax/preprocess.h"

namespace espy::syntax {

constexpr const char* kBtfMacro = "BPFTRACE_HAVE_BTF";  // defined where the kernel has BTF

// What is defined before the first line.
struct Prelude {
  std::vector<CDefinition> definitions;  // macros of included headers
  NameValue constant;                    // constants that no definition needs to give; may be empty
  bool has_btf = true;                   // whether to define kBtfMacro
};

// Returns the macros that `prelude` defines.
MacroBodies macro_bodies(const Prelude& prelude);

Ast parse(const source::Sources& sources, source::SourceId source, source::Diagnostics& diagnostics,
          const Prelude& prelude = {});

// Parses into the tables of `whole`; returns the top level alone.
Ast parse_part(const source::Sources& sources, source::SourceId source, Ast& whole, source::Diagnostics& diagnostics,
               const Prelude& prelude = {});

// Parses all of `source` as one expression, such as the body of a #define, into the tables of `ast`.
ExprId parse_expression(const source::Sources& sources, source::SourceId source, Ast& ast,
                        source::Diagnostics& diagnostics);

// Parses all of `source` as a type.
TypeNameId parse_type(const source::Sources& sources, source::SourceId source, Ast& ast,
                      source::Diagnostics& diagnostics);

}  // namespace espy::syntax
