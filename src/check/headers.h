// #include: what a script or header takes from C headers.
//
// Headers of the kernel cost nothing: BTF has their types. All others are given to the system's C compiler, once for
// each file that includes any: their types join those of the kernel and win over them, and macros that the script names
// come back as definitions for the parser, which must know them before it reads `char name[IFNAMSIZ]`. Kernel headers
// are only compiled where the script names something in them that BTF does not hold: a macro, or a type of a part that
// this kernel was built without.
#pragma once

#include <string>

#include "check/check.h"
#include "syntax/parser.h"

namespace espy::check {

// What `source` must know before it is parsed. Of a script, only macros that it names are read; of an import
// (`is_script` false) all, as others may name them. Errors go to request.diagnostics.
syntax::Prelude read_headers(source::SourceId source, bool is_script, CheckRequest& request);

// The same for an imported header that this language cannot read itself, as a C compiler reads it. `at` is the import.
syntax::Prelude compile_header(const std::string& path, source::Span at, CheckRequest& request);

}  // namespace espy::check
