// The interface of builtins: variables, functions and aggregations.
//
// A builtin is one row of a table in builtins/FAMILY.cc with its functions. The checker reads the signature, so the
// number and types of arguments, defaults and the result's type need no code. The manual, --help and suggestions are
// generated from the row, too.
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
  kVariable,  // used as `x` or `x()`
  kFunction,
  kAggregation,  // only on the right of a map assignment: count(), hist(n)
};

// Whether `espy record --for` records the value with the event.
enum class Kept : uint8_t { kNo, kYes, kWithArguments };

struct Builtin {
  // RESULT name(PARAMETER, ...). RESULT and the type of a PARAMETER are a type of the language or one of
  //   int (any integer, bool or enum), pointer, string (any capacity), buffer, any, map, any or map, map or element,
  //   histogram, stack, type, void, variable (assigned by the builtin; has the type of the map's values), word (a
  //   name, or names joined by dots), mode or task (a bare word, or a value).
  // A PARAMETER is `[literal] TYPE NAME [= DEFAULT]`; `literal` requires a constant; a final `...` takes any number of
  // values. For RESULT `any`, `check` returns the type.
  std::string_view sig;
  std::string_view doc;  // one or more sentences for the manual, Markdown; the first one for lists
  BuiltinKind kind = BuiltinKind::kFunction;

  // Checks what the signature cannot express, and reports errors through the checker. Returns the type of the result,
  // which is used if the signature says `any`. Called only if the arguments fit the signature.
  types::TypeId (*check)(check::Checker&, const CallSite&) = nullptr;

  // Emits IR for the value. The operand is empty for a void function.
  lower::Operand (*lower)(lower::Lowering&, const CallSite&) = nullptr;

  // For strings and buffers: emits IR that writes the bytes to `destination` (memory of the program, `capacity_bytes`
  // long) and returns the length without the NUL of a string. Saves a copy from a scratch buffer into a record.
  ir::ValueId (*lower_into)(lower::Lowering&, const CallSite&, ir::ValueId destination,
                            uint32_t capacity_bytes) = nullptr;

  // kAggregation: emits IR that adds the call's argument to the value at `address` (this CPU's, with the layout in
  // program/layout.h). With `is_atomic`, another thread may run the same program on this CPU in between. Null for
  // recent(), whose values lower/maps.cc adds.
  void (*lower_update)(lower::Lowering&, const CallSite&, ir::ValueId address, bool is_atomic) = nullptr;

  // The user-space half: handles a record that the code of `lower` has written.
  void (*handle)(runtime::EventRecord&) = nullptr;

  std::optional<kernel::Feature> needs = {};  // an error if the kernel lacks it
  bool is_unsafe = false;                     // requires --unsafe
  bool ends_action = false;                   // exit(): the rest of the action is not run
  bool reads_context = false;                 // reads the probe's raw context: Uses::context
  bool reads_file = false;                    // needs to know which file was probed: Uses::file
  bool reads_text_at = false;                 // its value is the text that its first argument points to
  Kept kept = Kept::kNo;
  bool is_in_recordings = false;     // with `kept`: as far as others have it, it is found without
  bool removes_keys = false;         // or replaces elements of the map that its first argument is, or is of
  std::string_view capability = {};  // besides CAP_BPF and CAP_PERFMON, see docs/reference/privileges.md
  std::string_view providers = {};   // "kprobe,uprobe": where it works; empty: everywhere
  std::string_view example = {};     // a script for the manual, run by the tests
};

// The builtins of one file.
struct BuiltinFamily {
  std::string_view title;      // the section of the manual
  std::string_view note = {};  // a sentence below the title
  std::span<const Builtin> rows;

  auto begin() const { return rows.begin(); }
  auto end() const { return rows.end(); }
};

// Returns the name in `sig`.
inline std::string_view name_of(const Builtin& builtin) {
  const std::string_view head = builtin.sig.substr(0, builtin.sig.find('('));
  return head.substr(head.rfind(' ') + 1);
}

}  // namespace espy::spec
