// The interface of builtins: variables, functions, and aggregations.
//
// A builtin is one row, with the functions that it names, in builtins/FAMILY.cc. The row is the contract: the checker
// reads the signature, so arity, kinds of argument, defaults and return type need no code; the manual, --help and "did
// you mean" come from it too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "kernel/features.h"
#include "syntax/ast.h"
#include "types/type.h"

namespace espy::check {
class Checker;
}
namespace espy::lower {
class Lowering;
struct Operand;
}  // namespace espy::lower
namespace espy::runtime {
class EventRecord;
}

namespace espy::spec {

// One use in the script: `pid`, `pid()`, `str(args.filename, 16)`.
struct CallSite {
  syntax::ExprId expr;
  source::Span span;
  std::span<const syntax::ExprId> arguments;
};

enum class BuiltinKind : uint8_t {
  kVariable,  // usable as `x` or `x()`
  kFunction,
  kAggregation,  // only on the right of a map assignment: count(), hist(n)
};

struct Builtin {
  // RESULT name(PARAMETER, ...). RESULT and the type of a PARAMETER are a type of the language or one of
  //   int (any integer, bool or enum), pointer, string (any capacity), buffer, any, map, any or map, map or element,
  //   aggregation, stack, type, void, variable (assigned by the builtin; of the type of the map's values), word (a
  //   name, or names with dots).
  // A PARAMETER is `[literal] TYPE NAME [= DEFAULT]`; `literal` wants a constant; a last `...` takes any number of
  // values. RESULT `any` means that `check` says.
  std::string_view sig;
  std::string_view doc;  // one or more sentences for the manual, Markdown; the first one for lists
  BuiltinKind kind = BuiltinKind::kFunction;

  // What the signature cannot say. Returns the result's type (used if the signature says `any`); reports through the
  // checker.
  types::TypeId (*check)(check::Checker&, const CallSite&) = nullptr;

  // Makes IR for the value. For a void function the operand returned is empty.
  lower::Operand (*lower)(lower::Lowering&, const CallSite&) = nullptr;

  // For what gives strings and buffers: writes the bytes at `destination` (our memory, `capacity_bytes` long) and
  // returns the length written, the NUL of a string not counted. Spares the copy from scratch into a record.
  ir::ValueId (*lower_into)(lower::Lowering&, const CallSite&, ir::ValueId destination,
                            uint32_t capacity_bytes) = nullptr;

  // kAggregation: folds the call's argument into the value at `address` (this CPU's, layout in program/layout.h). Where
  // `is_atomic`, another thread may run the same program on this CPU in between.
  void (*lower_update)(lower::Lowering&, const CallSite&, ir::ValueId address, bool is_atomic) = nullptr;

  // The user-space half: called when the record that `lower` emitted is drained.
  void (*handle)(runtime::EventRecord&) = nullptr;

  std::optional<kernel::Feature> needs = {};  // else "this kernel lacks ..."
  bool is_unsafe = false;                     // only with --unsafe
  bool ends_action = false;                   // exit(): what follows in the block is not reached
  std::string_view providers = {};            // "kprobe,uprobe": where it may be used; empty: everywhere
  std::string_view example = {};              // a script for the manual; run by the tests
};

// The builtins of one file.
struct BuiltinFamily {
  std::string_view title;      // the section of the manual
  std::string_view note = {};  // a sentence below the title
  std::span<const Builtin> rows;

  auto begin() const { return rows.begin(); }
  auto end() const { return rows.end(); }
};

// The name in `sig`: the word before its parenthesis, or its last word.
inline std::string_view name_of(const Builtin& builtin) {
  const std::string_view head = builtin.sig.substr(0, builtin.sig.find('('));
  return head.substr(head.rfind(' ') + 1);
}

}  // namespace espy::spec
