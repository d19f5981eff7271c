// From a script to its output.
#pragma once

#include <vector>

#include "cli/command.h"
#include "spec/provider.h"
#include "syntax/ast.h"

namespace espy::cli {

// A script that a command has built (syntax/build.h). It has no text, so that no name in it is ever parsed.
struct BuiltScript {
  syntax::Ast ast;
  // Of each action, as check::CheckRequest::bound.
  std::vector<std::vector<spec::BoundProbe>> probes = {};
};

// Compiles and runs the script that the options name; with --dump before `load`, only compiles it. `prepare` may be
// empty. Returns the exit status; has printed all errors.
int run_script(const Options& options, Environment& environment, const PrepareSession& prepare);

// The same for a script that a command has built.
int run_script(BuiltScript script, const Options& options, Environment& environment, const PrepareSession& prepare);

// Whether --dump ends before something is loaded, which any user may do.
bool ends_before_load(const Options& options);

}  // namespace espy::cli
