// What the checker found out: names, types, probes, constants. The tree itself is not changed; facts lie beside it.
//
// An action is checked once for each kind of context that its probes have (`Unit`), since `args.x` may mean another
// type in each. Maps are shared by all units; variables belong to one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "program/program.h"
#include "spec/builtin.h"
#include "spec/config.h"
#include "spec/provider.h"
#include "syntax/ast.h"

namespace espy::check {

using program::ProbeId;
using program::ScriptMapId;
using syntax::ExprId;
using syntax::StmtId;
using types::TypeId;
using VariableId = Id<struct VariableTag>;

// An integer (bool and enum too; unsigned ones as the same 64 bits) or a string known at compile time.
using Constant = std::variant<std::monostate, int64_t, std::string>;

// The constant where it is one of that type.
template <class T>
std::optional<T> constant_as(const Constant& constant) {
  const T* value = std::get_if<T>(&constant);
  return value ? std::optional(*value) : std::nullopt;
}

// What an expression is, in one unit.
struct ExprFact {
  TypeId type;                                // of the value; invalid: never looked at (dead comptime branch)
  Constant constant;                          // if known, nothing else needs to be evaluated
  const spec::Builtin* builtin = nullptr;     // Name, Call: the row
  const spec::ContextField* field = nullptr;  // args.x (on the Access), argN, retval: how to get it
  VariableId variable;                        // Variable
  ScriptMapId map;                            // Map, and Index whose base is a Map: the element
  int32_t function = -1;                      // Call of a script's `fn`: index into Ast::functions
  ExprId replacement;                         // Name of a #define: what it stands for
  bool is_reduced = false;                    // an aggregation read as a number: merge it over CPUs
  bool branch_taken = false;                  // If with comptime: which branch is kept; the other has no facts
};

struct StmtFact {
  VariableId variable;  // Let, ForMap, ForRange: what it declares
  TypeId type;
  std::vector<VariableId> hoisted;  // begin here, though branches of this `if` assign them first (check/hoisting.h)
};

struct Variable {
  std::string name;
  TypeId type;
  source::Span span;
};

struct Unit {
  const syntax::Action* action = nullptr;      // into Checked::ast; null for a function's unit
  const syntax::Function* function = nullptr;  // `fn`
  spec::ProbeContext context;
  std::vector<ProbeId> probes;         // what one program serves
  std::vector<VariableId> parameters;  // of `fn`
  TypeId result;                       // of `fn`
  SideTable<ExprId, ExprFact> exprs;
  SideTable<StmtId, StmtFact> stmts;
  Table<VariableId, Variable> variables;

  const ExprFact& fact(ExprId id) const { return exprs[id]; }
  const StmtFact& fact(StmtId id) const { return stmts[id]; }
};

struct CheckedMap {
  std::string name;
  TypeId key;    // void: scalar
  TypeId value;  // void: only ever printed or cleared
  uint64_t max_entries = 0;
  program::MapKind kind = program::MapKind::kHash;  // as declared, or by its value
  bool is_declared = false;
  source::Span span;
};

// An option that the script asks for: getopt("count", 5, "how many").
struct ScriptOption {
  std::string name;
  std::string initial;  // its value where it is not given, as text
  std::string doc;
};

struct Checked {
  syntax::Ast ast;  // macros and imports expanded
  std::vector<Unit> units;
  Table<ScriptMapId, CheckedMap> maps;
  Table<ProbeId, program::Probe> probes;
  std::vector<ScriptOption> options;  // in the order of their first use
  spec::Config config;
  symbols::Symbolizer* symbols = nullptr;  // that the request came with: its files are open already
  bool measures_stacks = false;            // stacks are kept with the number of their frames
};

}  // namespace espy::check
