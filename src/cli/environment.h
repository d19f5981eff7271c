// What every mode of espy begins with: the machine, the kernel, the registry, the script's text.
#pragma once

#include <memory>
#include <string>

#include "check/check.h"
#include "cli/options.h"
#include "kernel/kernel.h"
#include "load/machine.h"
#include "opt/pipeline.h"
#include "source/diagnostic.h"
#include "source/source.h"
#include "spec/config.h"
#include "spec/registry.h"
#include "symbols/symbols.h"
#include "types/type.h"

namespace espy::cli {

struct Environment {
  spec::Registry registry;
  std::unique_ptr<load::Machine> machine;
  std::unique_ptr<kernel::Kernel> kernel;
  types::Types types;
  symbols::Symbolizer symbols;
  source::Sources sources;
  source::Diagnostics diagnostics;
  spec::Config config;  // from the environment's variables and the options
#ifdef ESPY_DEBUG
  opt::PassObserver after_pass = opt::verify_after_pass;
#else
  opt::PassObserver after_pass = {};
#endif

  check::CheckRequest check_request() { return {sources, registry, *kernel, types, &symbols, config, diagnostics}; }
};

// Opens everything; mounts tracefs where it is not.
Result<std::unique_ptr<Environment>> open_environment(const Options& options);
// The same; null where it cannot be, which has been said.
std::unique_ptr<Environment> open_or_complain(const Options& options);

// The same on another machine and kernel than those we run on.
std::unique_ptr<Environment> make_environment(const Options& options, std::unique_ptr<load::Machine> machine,
                                              std::unique_ptr<kernel::Kernel> kernel);

// Whether this process may load and attach programs; the error names the capabilities that it lacks.
Status require_privileges();
// Whether tracefs can be read, which describes tracepoints.
bool can_read_tracefs();

// -e, FILE or stdin.
Result<source::SourceId> read_script(const Options& options, source::Sources& sources);

// The script as a tree, with what the headers that it includes say.
syntax::Ast parse_script(source::SourceId script, check::CheckRequest& request);

// Prints what was found so far to stderr; warnings only unless --no-warnings. True if there are errors.
bool report(const source::Diagnostics& diagnostics, const source::Sources& sources, const Options& options);

// "espy: MESSAGE" and the hint, to stderr.
void complain(const Error& error);

}  // namespace espy::cli
