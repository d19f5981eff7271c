// check: the semantic analysis, which expands imports and macros, binds probes and infers types.
//
// Takes the tree, the registry and a kernel to query; gives `Checked` and diagnostics for all errors of the script. If
// there are no errors, lowering cannot fail.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "check/script_files.h"
#include "source/diagnostic.h"
#include "spec/provider.h"
#include "spec/registry.h"
#include "syntax/parser.h"

namespace espy::check {

struct CheckRequest {
  source::Sources& sources;  // imports and macro expansions are added
  const spec::Registry& registry;
  kernel::Kernel& kernel;
  types::Types& types;
  symbols::Symbolizer* symbols;  // null if there is none
  spec::Config config;           // of the environment and the command line; the script adds to it
  source::Diagnostics& diagnostics;
  spec::Binding binding = spec::Binding::kAttach;
  const ScriptFiles* files = nullptr;  // taken instead of the machine's files and compiler; null: these are used
  ScriptFiles* recorded = nullptr;     // filled with the used facts of the machine; may be null
  // For a script that a command has built: the probes of each action, as many as it has attach points. Without them,
  // the attach points are resolved.
  std::span<const std::vector<spec::BoundProbe>> bound = {};
};

Checked check(syntax::Ast ast, CheckRequest& request);

// ---- #include: types and macros of C headers, before the script is parsed
//
// Types of kernel headers come from BTF. Other headers are compiled by the system's C compiler, once for each file that
// includes any. Their types are added to the kernel's and override them. The macros that the script names become
// definitions for the parser, which must know them before it reads `char name[IFNAMSIZ]`. Kernel headers are compiled
// only if the script names something that BTF does not have: a macro, or a type of a subsystem that this kernel was
// built without.

// Returns the definitions that must be known before `script` is parsed: the macros that it names. Errors go to
// request.diagnostics.
syntax::Prelude read_script_headers(source::SourceId script, CheckRequest& request);
// The same for a script that a command has built, which has no text: the files of --include.
syntax::Prelude read_script_headers(const syntax::Ast& built, CheckRequest& request);
// The same for an import: all macros of its headers, because other files may name them.
syntax::Prelude read_import_headers(source::SourceId import, CheckRequest& request);

// ---- The variables of `config = { }` and their BPFTRACE_* names in the environment

// Reads `BPFTRACE_*` through `getenv`, which tests replace. Diagnostics have no span.
void read_environment(spec::Config& config, const std::function<const char*(const char*)>& getenv,
                      source::Diagnostics& diagnostics);
// Warns of each variable with the prefix BPFTRACE_ or ESPY_ that is not read, and whose name is near one that is.
void warn_of_unknown_variables(std::span<const std::string> names, source::Diagnostics& diagnostics);

// A variable as the manual shows it.
struct ConfigRow {
  std::string_view name;
  std::string_view old_name;  // may be empty
  std::string_view doc;       // empty: accepted and without effect
  std::string initial;        // the default
};
std::vector<ConfigRow> config_rows();

// The value of a variable that is read on use, and has no field in spec::Config. The environment has precedence over
// the script; "" if neither sets it.
std::string config_value(const syntax::Ast& ast, std::string_view name,
                         const std::function<const char*(const char*)>& getenv);

// ---- Questions to the result

// Returns the capabilities that a script needs, by the rows of its probes and builtins (docs/reference/privileges.md):
// their names, sorted, CAP_BPF and CAP_PERFMON among them. Names of user stacks and of addresses, which tracing works
// without, count as needed.
std::vector<std::string_view> capabilities_of(const Checked& checked, const spec::Registry& registry);

// Events that happen in another task than the one they are about are skipped by -p, --follow and --cgroup. Returns ""
// if these skip no such event that the script's probes would see, otherwise a sentence with the first of these probes.
// Call it after the script was checked.
std::string events_in_other_tasks(const Checked& checked);

// Returns the names of the maps that hold what the script needs from one event to another, such as the time at which a
// call began. Their elements are assigned, and the script deletes them by key or assigns a time to them. It does not
// print them. Views fold these maps.
std::set<std::string> scratch_maps(const Checked& checked, const types::Types& types);

}  // namespace espy::check
