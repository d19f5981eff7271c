// The passes around the checker (check/checker.h), in the order of check.cc: each is a function with a few arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "check/check.h"
#include "syntax/ast.h"

namespace espy::check {

// ---- Before probes are bound

// Reads the script's `config = { }` into `config`. Variables set by the environment keep their values.
void read_config(const syntax::Ast& ast, spec::Config& config, source::Diagnostics& diagnostics);

// import "x.bt": reads all files that `ast` imports, directly or indirectly, each once. It puts their contents in front
// of the contents of `ast`, so a file's `begin` runs after the `begin`s of its imports. Paths are relative to the
// importing file. A directory stands for the scripts and headers in it, without subdirectories. Errors go to
// request.diagnostics.
void read_imports(syntax::Ast& ast, source::SourceId script, CheckRequest& request);

// Macros of C without parameters, by name: the expression that each stands for; invalid if it stands for itself.
using Defines = std::map<std::string, ExprId, std::less<>>;

// Parses the bodies of the #defines that the script names, as expressions of the same tree. One with parameters becomes
// a macro of the language, to be expanded with the others. The tree grows, so facts must not exist yet.
Defines parse_defines(syntax::Ast& ast, CheckRequest& request);

// Adds the macros of espy's library, which scripts can call without an import, if the script names them and does not
// define them for the same number of arguments. The text of others is not parsed.
void add_library(syntax::Ast& ast, source::Sources& sources, source::Diagnostics& diagnostics);

// Replaces calls of macros in `ast`. A call becomes a Block: the body with its variables renamed and its parameters
// replaced by the arguments. Spans of a body's nodes record the call that they came from. Recursion is an error. A call
// with a number of arguments that no macro of its name takes is one of the builtin of that name, if there is one.
void expand_macros(syntax::Ast& ast, const spec::Registry& registry, source::Sources& sources,
                   source::Diagnostics& diagnostics);
// Returns true if a call can have a number of arguments that both macros take.
bool take_as_many(const syntax::Macro& a, const syntax::Macro& b);
// Returns true if the parameters of such a call are also of the same kinds, so that the call can mean both.
bool take_the_same(const syntax::Macro& a, const syntax::Macro& b);

// Moves each assignment of a block that ends with an aggregation, `@ = { ...; avg($x) }`, into the block:
// `{ ...; @ = avg($x); }`. A call of a macro is such a block, too.
void assign_inside_blocks(syntax::Ast& ast, const spec::Registry& registry);

// Adds the structs, unions, enums and typedefs of `ast` to `types`, laid out as a C compiler for the same machine does.
// Errors go to `diagnostics`.
void define_c_types(const syntax::Ast& ast, types::Types& types, kernel::Kernel& kernel,
                    source::Diagnostics& diagnostics);
// The type of "int", "unsigned long", "u32", "char"; invalid for other names.
types::TypeId c_integer(types::Types& types, std::string_view name);

// ---- Binding

// The type of `retval` if a wildcard matches functions of programs: the type of each function, or this type only for
// functions that return integers, and the register for others.
enum class ResultTypes : uint8_t { kOwn, kNumbersInWildcards };

struct BindResult {
  bool has_mixed_results = false;  // functions of a wildcard, whose `retval` the action reads, return different types
  bool is_within_limits = true;    // false, after a report: more programs or probes than the config allows
};

// Binds attach points to probes, and groups the probes of an action into units, one for each program. Fills
// `checked.probes` and `checked.units`, with contexts, for all actions and functions of `checked.ast`. Reports attach
// points that are wrong or match nothing, and if there are more programs or probes than the config allows.
BindResult bind_probes(Checked& checked, CheckRequest& request, ResultTypes results);

// ---- With the checker

// Hoisting of variables out of the branches of an `if`. A variable belongs to the block that first assigns it. Scripts
// written for bpftrace without block scopes read a variable after an `if` whose branches all assign it. It has a value
// on every path, so it is hoisted: it belongs to the block around the `if`.
//
// Returns the variables that every branch of the `if` at `index` in `block` assigns and that later statements read.
// Each is the target of its first assignment, a syntax::Variable. Empty if the statement is not an `if`.
std::vector<ExprId> variables_to_hoist(const syntax::Ast& ast, const syntax::Block& block, size_t index);

// "did you mean `PREFIXx`?" where x is the candidate nearest to `word`; "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view prefix = {});

// ---- After it

// Finds the maps whose elements can be kept with the threads that write them, in task storage: sets `is_of_thread` and
// `storage_note` of the maps that all uses address by `tid`.
//
// A map qualifies if each use of it is by `tid` (or by a key that `tid` determines: `pid, tid`), and if its values of
// other threads are never shown. The script does not print, count or iterate it, and `end` clears it before maps are
// printed. Then it behaves like a hash, with two exceptions. An element ends with its thread, and a hash would show it
// to the next thread of that number. It follows a thread whose exec(2) changes its number.
void find_thread_maps(Checked& checked, const spec::Registry& registry, const types::Types& types,
                      kernel::Kernel& kernel);

// Warns of events_in_other_tasks().
void warn_of_other_tasks(const Checked& checked, source::Diagnostics& diagnostics);

// Reports maps of `print_units` that the script does not have.
void check_print_units(const Checked& checked, source::Diagnostics& diagnostics);

// ---- Visits a root and all expressions below it, parents first.

using ExprVisitor = std::function<void(syntax::ExprId)>;

using TypeNameVisitor = std::function<void(syntax::TypeNameId)>;  // of casts, declarations and sizeof

void walk(const syntax::Ast& ast, syntax::ExprId root, const ExprVisitor& visit,
          const TypeNameVisitor& visit_type = {});
void walk(const syntax::Ast& ast, syntax::StmtId root, const ExprVisitor& visit);

}  // namespace espy::check
