// From a script to its output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "cli/command.h"
#include "cli/environment.h"
#include "program/program.h"
#include "runtime/child.h"
#include "source/source.h"
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

// ---- Probes of attach points that are words of the command line, for the scripts that commands write.

// Returns the probes that the attach point stands for; none if it is wrong or stands for nothing, with the reasons in
// `diagnostics`. `has_types`: the types of arguments and results are wanted, as debug information has them.
std::vector<spec::BoundProbe> bind_probes(Environment& environment, const spec::Config& config,
                                          const spec::Provider& provider, const std::vector<std::string>& parts,
                                          bool has_types, source::Diagnostics& diagnostics, bool uses_locals = false);

// Whether it warns of returns that end a program, or are not seen. The checker does not bind the probes of wildcards
// again, so commands have to show this.
bool is_about_returns(const source::Diagnostic& diagnostic);

// Returns what programs of such a probe can read.
spec::ProbeContext context_of(Environment& environment, const spec::Provider& provider, const spec::BoundProbe& bound,
                              bool has_types, bool uses_locals = false);

// ---- --dump of the stages whose modules have no printer.

// One token per line: its position and its text.
std::string dump_tokens(const source::Sources& sources, source::SourceId script);
// The types that check has inferred: of maps, then of each unit's context fields and variables.
std::string dump_types(const check::Checked& checked, const types::Types& types);
// One event schema per line: index, builtin, fields with their offsets.
std::string dump_events(const program::Program& program, const types::Types& types);

// ---- --user: what espy gives up once the probes are attached.

// Makes this process the user's for good, without capabilities; where the kernel lets no other process use open maps,
// it keeps CAP_BPF, and says so. `used`: the capabilities that the script uses; what needs them and can be done ahead
// is done before.
Status give_up_rights(const runtime::Identity& user, const std::vector<std::string_view>& used, Environment& e);

}  // namespace espy::cli
