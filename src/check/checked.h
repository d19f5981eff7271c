// The result of the check: names, types, probes, constants, in side tables of the tree.
//
// An action is checked once for each kind of context that its probes have (`Unit`), since `args.x` may have another
// type in each. Maps are shared by all units; variables belong to one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/sparse_table.h"
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

// An integer (also of bool and enum; unsigned ones with the same 64 bits) or a string known at compile time.
using Constant = std::variant<std::monostate, int64_t, std::string>;

// nullopt if the constant is not a T.
template <class T>
std::optional<T> constant_as(const Constant& constant) {
  const T* value = std::get_if<T>(&constant);
  return value ? std::optional(*value) : std::nullopt;
}

// The facts about an expression in one unit.
struct ExprFact {
  TypeId type;                                // of the value; invalid if it was never checked (a branch not taken)
  Constant constant;                          // if known, the expression needs no evaluation
  const spec::Builtin* builtin = nullptr;     // Name, Call: the row
  const spec::ContextField* field = nullptr;  // args.x (on the Access), argN, retval: how to read it
  VariableId variable;                        // Variable
  ScriptMapId map;                            // Map, and Index whose base is a Map: the element
  int32_t function = -1;                      // Call of a script's `fn`: index into Ast::functions
  ExprId replacement;                         // Name of a #define: what it stands for
  bool is_reduced = false;                    // an aggregation read as a number: merged over CPUs
  bool is_statement = false;                  // the value is dropped, other than by `_ =`
  std::optional<bool> branch_taken;           // of a known condition: the branch that is kept; the other has no facts
};

struct StmtFact {
  VariableId variable;  // Let, ForMap, ForRange: what it declares
  TypeId type;
  std::vector<VariableId> hoisted;  // variables that belong to the block around this `if` (variables_to_hoist)
};

struct Variable {
  std::string name;
  TypeId type;
  source::Span span;
};

struct Unit {
  // Defined in one file, like the functions of Checked: the code for all tables is large.
  Unit();
  Unit(const Unit&);
  Unit(Unit&&) noexcept;
  Unit& operator=(const Unit&);
  Unit& operator=(Unit&&) noexcept;
  ~Unit();

  const syntax::Action* action = nullptr;      // into Checked::ast; null for a function's unit
  const syntax::Function* function = nullptr;  // `fn`
  spec::ProbeContext context;
  std::vector<ProbeId> probes;         // all served by one program
  std::vector<VariableId> parameters;  // of `fn`
  TypeId result;                       // of `fn`
  SparseTable<ExprId, ExprFact> exprs;
  SparseTable<StmtId, StmtFact> stmts;
  Table<VariableId, Variable> variables;

  const ExprFact& fact(ExprId id) const { return exprs[id]; }
  const StmtFact& fact(StmtId id) const { return stmts[id]; }
};

struct CheckedMap {
  std::string name;
  TypeId key;    // void: scalar
  TypeId value;  // void: only printed or cleared
  uint64_t max_entries = 0;
  program::MapKind kind = program::MapKind::kHash;  // as declared, or derived from its value
  bool is_declared = false;
  bool is_of_thread = false;  // see find_thread_maps()
  std::string storage_note;   // for keys that `tid` determines: why it is kept with the thread, or why not
  source::Span span;
};

// An option that the script asks for: getopt("count", 5, "how many").
struct ScriptOption {
  std::string name;
  std::string initial;  // the default, as text
  std::string doc;

  bool is_switch() const { return initial == "true" || initial == "false"; }
};

struct Checked {
  Checked();
  Checked(Checked&&) noexcept;
  Checked& operator=(Checked&&) noexcept;
  ~Checked();

  syntax::Ast ast;  // macros and imports expanded
  std::vector<Unit> units;
  Table<ScriptMapId, CheckedMap> maps;
  Table<ProbeId, program::Probe> probes;
  std::vector<ScriptOption> options;  // in order of first use
  spec::Config config;
  symbols::Symbolizer* symbols = nullptr;  // the request's, whose files are open already
  bool measures_stacks = false;            // stacks are stored with their number of frames
};

}  // namespace espy::check
