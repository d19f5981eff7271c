// run: the pipeline, from a script to its output.
//
// Takes RunOptions and an Environment: the machine, the kernel, the registry. It reads, parses, checks, compiles and
// loads the script, runs the session, and prints errors. The environment is this machine, or a recording
// (replay_host.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "program/program.h"
#include "run/environment.h"
#include "run/host.h"
#include "runtime/child.h"
#include "source/source.h"
#include "spec/provider.h"
#include "syntax/ast.h"

namespace espy::run {

// A script that a command has built (syntax/build.h). It has no text, so that no name in it is ever parsed.
struct BuiltScript {
  syntax::Ast ast;
  // The probes of each action, like check::CheckRequest::bound.
  std::vector<std::vector<spec::BoundProbe>> probes = {};
};

// Compiles and runs the script that the options name; with --dump before `load`, only compiles it. `prepare` may be
// empty. Returns the exit status; has printed all errors.
int run_script(const RunOptions& options, Environment& environment, const PrepareSession& prepare);

// The same for a script that a command has built.
int run_script(BuiltScript script, const RunOptions& options, Environment& environment, const PrepareSession& prepare);

// Whether --dump ends before something is loaded, which any user may do.
bool ends_before_load(const RunOptions& options);

// ---- Lists of options, of --help and of scripts.

// Text in lines of 80 columns, for a place after `column` columns; the lines after the first are indented by these. A
// longer word stays whole.
std::string wrapped(std::string_view text, size_t column);
// A name and its text, in lines of 80 columns. `column`: where texts begin.
std::string help_row(std::string_view name, std::string_view doc, size_t column = 28);
// The lines of a list of a script's options, of getopt().
std::string script_option_lines(const std::vector<check::ScriptOption>& options);

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

}  // namespace espy::run
