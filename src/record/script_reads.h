// What scripts read of their probes, for `espy record --for` and --record.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run/environment.h"
#include "syntax/ast.h"

namespace espy::record {

// An expression of a script, of literals, names, members and calls.
struct ReadExpression {
  types::TypeId type;
  std::shared_ptr<const syntax::Ast> ast;
  syntax::ExprId id;
};

struct ProbeReads {
  bool all_arguments = false;
  std::set<std::string> fields;   // "filename" of args.filename, "arg0", "retval"
  std::set<std::string> texts;    // of those, the addresses of texts: str(arg0)
  std::set<std::string> buffers;  // the same for buf()
  std::set<std::string> locals;   // "count" of locals.count
  bool all_locals = false;
  std::map<std::string, ReadExpression> values;   // as syntax::format() has them
  std::map<std::string, ReadExpression> symbols;  // the same, of ksym() and usym()
  bool kernel_stack = false;
  std::string user_stack;  // the builtin that gives it; empty: none is read
};

struct ScriptReads {
  struct Target {
    std::vector<std::string> parts;  // the provider, and the other parts
    source::Span span;               // of the attach point
  };
  std::vector<Target> targets;
  std::map<std::string, ProbeReads> probes;               // by name
  std::map<std::string, uint32_t> struct_bytes;           // by the name of a struct: up to the last member that is read
  std::set<std::pair<std::string, std::string>> members;  // of structs, by their names
  bool has_locals = false;                                // of any probe
  bool has_timers = false;                                // interval or profile
  uint32_t depth = 1;                                     // of pointers that are followed, at most
};

// Checks the script of `options`, and adds what it reads. Has reported the errors of a script that is wrong.
Status add_reads(const run::RunOptions& options, run::Environment& environment, ScriptReads& out);

}  // namespace espy::record
