// The semantic analysis: expands imports and macros, binds probes, infers types.
//
// Takes the tree, the registry and a kernel to query; gives `Checked` and diagnostics for all errors of the script. If
// there are no errors, lowering cannot fail.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "check/checked.h"
#include "check/script_files.h"
#include "source/diagnostic.h"
#include "spec/provider.h"
#include "spec/registry.h"

namespace espy::check {

struct CheckRequest {
  source::Sources& sources;  // imports and macro expansions are added
  const spec::Registry& registry;
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null if there is none
  spec::Config config;           // of the environment and the command line; the script adds to it
  source::Diagnostics& diagnostics;
  bool is_listing = false;             // probes are only listed: what the machine lacks for attaching is no error
  bool is_foretold = false;            // predicts whether the script runs, without loading it
  const ScriptFiles* files = nullptr;  // taken instead of the machine's files and compiler; null: these are used
  ScriptFiles* recorded = nullptr;     // filled with what was used of the machine; may be null
  // Of a script that a command has built: the probes of each action, as many as it has attach points. Where there are
  // none, the probes are those that the attach points stand for.
  std::span<const std::vector<spec::BoundProbe>> bound = {};
};

Checked check(syntax::Ast ast, CheckRequest& request);

// Reads `BPFTRACE_*` through `getenv`, which tests replace. Diagnostics have no span.
void read_environment(spec::Config& config, const std::function<const char*(const char*)>& getenv,
                      source::Diagnostics& diagnostics);
// Warns of each variable with the prefix BPFTRACE_ or ESPY_ that is not read, and whose name is near one that is.
void warn_of_unknown_variables(std::span<const std::string> names, source::Diagnostics& diagnostics);

}  // namespace espy::check
