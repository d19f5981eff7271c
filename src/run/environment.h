// What most commands need: the machine, the kernel, the registry, the texts of scripts and headers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "kernel/kernel.h"
#include "load/machine.h"
#include "opt/pipeline.h"
#include "run/run_options.h"
#include "source/diagnostic.h"
#include "source/source.h"
#include "spec/config.h"
#include "spec/registry.h"
#include "symbols/symbols.h"
#include "types/type.h"

namespace espy::run {

// ---- The registry of all builtins and probe types.

spec::Registry make_registry();

struct Environment {
  spec::Registry registry;
  std::unique_ptr<load::Machine> machine;
  std::unique_ptr<kernel::Kernel> kernel;
  types::Types types;
  symbols::Symbolizer symbols;
  source::Sources sources;
  source::Diagnostics diagnostics;
  spec::Config config;                          // from the environment's variables and the options
  std::shared_ptr<const tool::Tool> tool = {};  // whose script is run
#ifdef ESPY_DEBUG
  opt::PassObserver after_pass = opt::verify_after_pass;
#else
  opt::PassObserver after_pass = {};
#endif

  check::CheckRequest check_request() {
    return {.sources = sources,
            .registry = registry,
            .kernel = *kernel,
            .types = types,
            .symbols = &symbols,
            .config = config,
            .diagnostics = diagnostics,
            .files = tool ? &tool->files : nullptr};
  }
};

// Opens everything for the running kernel; mounts tracefs if it is not mounted.
Result<std::unique_ptr<Environment>> open_environment(const RunOptions& options);
// The same for the given machine and kernel.
std::unique_ptr<Environment> make_environment(const RunOptions& options, std::unique_ptr<load::Machine> machine,
                                              std::unique_ptr<kernel::Kernel> kernel);

// Limits a run with -c to the command and what it starts, unless -p names a process. A kernel without BTF cannot follow
// processes.
void follow_command(const RunOptions& options, Environment& environment);

// Fails if this process may not load and attach programs; the error names the capabilities that it lacks.
Status require_privileges();
// Returns whether this process has CAP_SYS_ADMIN, which a few features need.
bool is_administrator();
// Returns whether this process is in another PID namespace than the first, as in a container.
bool has_own_pid_namespace();
// Returns when a process started; nullopt unless /proc has it by this number.
std::optional<spec::ProcessStart> find_process_start(const spec::Config& config, uint32_t pid);
// Returns whether tracefs can be read.
bool can_read_tracefs();

// Reads the program of -e, FILE or stdin.
Result<source::SourceId> read_script(const RunOptions& options, source::Sources& sources);

// Parses the script and the headers that it includes. Returns an empty tree if a header has errors.
syntax::Ast parse_script(source::SourceId script, check::CheckRequest& request);

// Returns the last part of the script's path; "-e" for a text of the command line.
std::string script_name(const RunOptions& options);

// Whether NO_COLOR is set, and not empty (no-color.org).
bool is_color_unwanted();

// Prints the diagnostics to stderr, without warnings if --no-warnings. Returns whether there are errors.
bool report(const source::Diagnostics& diagnostics, const source::Sources& sources, const RunOptions& options);

// Prints "espy: MESSAGE" and the hint to stderr. Returns EXIT_FAILURE.
int complain(const Error& error);

}  // namespace espy::run
