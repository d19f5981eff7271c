// check: from a tree to a program that means something. Every user error ends here.
//
// In: the tree, the registry, the kernel to ask. Out: `Checked`, and diagnostics for everything that is wrong, all in
// one run. If there are no errors among them, lowering cannot fail.
#pragma once

#include "check/checked.h"
#include "source/diagnostic.h"
#include "spec/registry.h"

namespace espy::check {

struct CheckRequest {
  source::Sources& sources;  // imports and macro expansions are added
  const spec::Registry& registry;
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null where there is none
  spec::Config config;           // from the environment and the command line; the script adds to it
  source::Diagnostics& diagnostics;
};

Checked check(syntax::Ast ast, CheckRequest& request);

// `BPFTRACE_*` from the environment, given as a lookup so that tests need none. Unknown values are diagnostics without
// a place.
void read_environment(spec::Config& config, const std::function<const char*(const char*)>& getenv,
                      source::Diagnostics& diagnostics);

}  // namespace espy::check
