// TargetScript: what the scripts that commands write for targets have in common: expressions that the user typed,
// values of arguments, and actions. `espy trace` and the verbs derive from it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "run/environment.h"
#include "run/run_script.h"
#include "source/diagnostic.h"
#include "syntax/build.h"
#include "trace/trace_target.h"

namespace espy::trace {

using Values = std::vector<syntax::ExprId>;
using Statements = std::vector<syntax::StmtId>;

// A script for targets, and how its errors are shown.
struct TraceScript {
  // A target, and what can be named in it.
  struct Part {
    std::vector<source::SourceId> typed;  // the target, and what else was typed about its arguments
    std::vector<std::string> arguments;
  };
  run::BuiltScript script;
  std::vector<Part> parts;
  std::vector<std::string> left_out = {};  // sentences: arguments and functions that are not shown
};

// The diagnostic as it is shown, which is about what the user typed. One about an unknown name gets the names that
// there are.
source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script, const source::Sources& sources);

// Runs a script that a command has written, or prints why it could not be written. Prints skipped functions and
// arguments as warnings. Returns the exit status.
int run_target_script(Result<TraceScript> script, const run::RunOptions& options, run::Environment& environment,
                      const run::PrepareSession& prepare);

// Each argument of a probe becomes a variable, so that `skb->len` of a target is `$skb->len` in the script. What the
// user typed is parsed, an expression at a time; names of files are only compared with it.
class TargetScript {
 protected:
  // An expression in a source that the user typed.
  struct TypedValue {
    source::SourceId source;
    TraceItem item;
  };

  static constexpr const char* kResult = "retval";  // also the variable of it, with `$`

  explicit TargetScript(run::Environment& environment) : e_(environment) {}

  // Makes this target the current one. Returns its part, without the names of its arguments.
  TraceScript::Part begin_target(const TraceTarget& target);
  // Adds the names of the arguments that functions of the target have to its part, and keeps them as `arguments_`.
  void take_arguments(const std::vector<TraceProbes>& groups, TraceScript::Part& part);

  static bool has_result(const TraceProbes& probes) { return probes.result.is_there(); }
  static std::vector<std::string> names_of(const TraceProbes& probes);

  // ---- Hidden calls and arguments, as sentences

  void note_hidden(const TraceTarget& target, const TraceProbes& probes);
  // A sentence about functions whose returns are not followed.
  void note_unsafe(const TraceTarget& target, const std::vector<TraceProbes>& groups);
  static tl::unexpected<Error> fail_unsafe(const TraceTarget& target);

  // ---- What the user typed

  // Reports syntax errors in an expression.
  void check_syntax(const TypedValue& typed);
  // Whether an expression names an argument.
  bool is_named(const TypedValue& typed, const std::string& name);
  // Adds an expression to the script, with the variables of `names` instead of their names. A pointer to characters
  // that is compared with a text is read.
  syntax::ExprId expression(const TypedValue& typed, const std::vector<std::string>& names);
  // Functions of a wildcard that lack an argument or a result which the target names, and others have, are skipped.
  bool has_all_named(const TraceTarget& target, const TraceProbes& probes, const std::vector<std::string>& known);

  // ---- Pieces of the script

  syntax::ExprId variable(const std::string& name) const { return build_.variable("$" + name); }
  syntax::StmtId run(std::string function, Values arguments) const {
    return build_.run(build_.call(std::move(function), std::move(arguments)));
  }
  syntax::ExprId read(const TraceValue& value) const;
  // Assigns the arguments that statements read to their variables, and appends this to `body`.
  void read_arguments(const TraceProbes& probes, const Values& values, const Statements& statements, Statements& body);
  // The variables that are read.
  std::set<std::string> variables_of(const Values& values, const Statements& statements) const;
  // Requires one condition at least.
  syntax::ExprId all_hold(const Values& conditions) const;
  Statements only_if(const Values& conditions, Statements then) const;
  syntax::ExprId stack_pointer() const;
  // The name of a variable that no argument has.
  std::string unused_name(std::string out) const;
  void add_action(const TracePlace& place, Statements body);

  static void append(Statements& to, const Statements& more) { to.insert(to.end(), more.begin(), more.end()); }

  run::Environment& e_;
  run::BuiltScript script_;
  syntax::Build build_{script_.ast, {}};  // with the place of the current target
  source::SourceId target_;               // the current one
  std::vector<std::string> arguments_;    // of the current target's functions
  std::vector<TraceScript::Part> parts_;
  std::vector<std::string> left_out_;

 private:
  // The source of the parser has the text at its place, and another word of the same length for `return`. The spans of
  // the nodes, and of the diagnostics, are in the typed text.
  syntax::ExprId parse(const TypedValue& typed, syntax::Ast& ast, source::Diagnostics& diagnostics);
  syntax::TypeName type_name(types::TypeId id) const;
  void read_compared_texts(syntax::ExprId id);

  std::map<std::pair<uint32_t, size_t>, source::SourceId> copies_;  // for the parser, by source and offset
};

}  // namespace espy::trace
