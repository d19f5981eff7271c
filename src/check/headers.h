// #include: types and macros of C headers.
//
// Types of kernel headers come from BTF. Other headers are compiled by the system's C compiler, once for each file that
// includes any: their types are added to the kernel's and override them, and the macros that the script names become
// definitions for the parser, which must know them before it reads `char name[IFNAMSIZ]`. Kernel headers are compiled
// only if the script names something that BTF does not have: a macro, or a type of a subsystem that this kernel was
// built without.
#pragma once

#include <string>

#include "check/check.h"
#include "syntax/parser.h"

namespace espy::check {

// Returns the definitions that must be known before `source` is parsed. Of a script's headers only the macros that it
// names are read; of an import's (`is_script` false) all, as other files may name them. Errors go to
// request.diagnostics.
syntax::Prelude read_headers(source::SourceId source, bool is_script, CheckRequest& request);

// The same for a script that a command has built, which has no text: the files of --include.
syntax::Prelude read_headers(const syntax::Ast& built, CheckRequest& request);

// The same for an imported header that only a C compiler can read. `at` is the span of the import.
syntax::Prelude compile_header(const std::string& path, source::Span at, CheckRequest& request);

}  // namespace espy::check
