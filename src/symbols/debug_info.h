// The debug information of a binary at an address: variables with their types and locations, the arguments and the
// result of the function, source lines.
//
// Addresses are virtual, as linked. DWARF is read on demand by symbols/dwarf/, which is internal to this module;
// opening reads only a few headers. For a value that is not available at an address, the reason and the lines where it
// is are returned.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "kernel/arch/arch.h"
#include "types/type.h"
#include "types/value_location.h"

namespace espy::symbols {

class ElfImage;

// The lines of a source file at which a variable can be read.
struct ReadableLines {
  std::string text;  // "lines 12-15, 18"; "" for none
  std::string file;  // as in the line table
  uint32_t first = 0;
};

struct DebugVariable {
  std::string name;
  std::string c_type;  // "const char *"
  types::TypeId type;
  std::optional<types::ValueLocation> place;
  std::string why;         // why the place is missing or incomplete: "is optimised out here"
  ReadableLines readable;  // without a place: the lines where it has one
};

// A statement of the line table, as for a breakpoint.
struct Statement {
  uint64_t address = 0;  // virtual, as linked
  std::string file;      // as in the line table
  uint32_t line = 0;
  uint32_t column = 0;
  std::string function;      // of the source line, demangled
  std::string inlined_into;  // the function that contains the code, if it is another one; otherwise ""
  uint64_t entry = 0;        // the function whose first statement it is; `address` is after the prologue; else 0
};

// A source frame at an address: the function that contains the code, or one that is inlined there.
struct SourceFrame {
  std::string function;  // the linkage name if there is one; "" in assembly
  std::string file;      // path of the source; "" if unknown
  uint32_t line = 0;     // of the code, or of the call that was replaced by the frame before
  bool is_inlined = false;
};

class DebugInfo {
 public:
  // Opens the DWARF of a binary or of its separate debug file. An error has a hint how to get debug information.
  static Result<std::shared_ptr<DebugInfo>> open(const ElfImage& image,
                                                 const std::vector<std::string>& debug_directories);
  ~DebugInfo();

  // Returns the memory of the sections of debug information and of the data read from them.
  uint64_t memory_bytes() const;
  // Fails (kRefusedFile) once something was not read because it would take too much memory or time.
  Status status() const;

  // Whether a function with code at the address is described.
  bool knows(uint64_t address) const;
  // Returns the path of the .dwo file that describes the code at the address, if it is not found; otherwise "".
  std::string missing_part(uint64_t address) const;
  // Returns the innermost inlined function first, the function that contains the code last; empty if none is described.
  std::vector<SourceFrame> frames_at(uint64_t address);
  // Returns the arguments of the function at `address`, or of the function `inlined` if it is inlined there, with their
  // locations at the address. Requires the same `types`, to which types are added, in all calls.
  std::vector<DebugVariable> arguments(types::Types& types, uint64_t address, std::string_view inlined);
  // Returns all other variables in scope, without variables that an inner one hides.
  std::vector<DebugVariable> locals(types::Types& types, uint64_t address, std::string_view inlined);
  // Returns the result, at the return, of the function that begins at `address`; nullopt for void.
  std::optional<DebugVariable> result(types::Types& types, uint64_t address);

  // A type or an enumerator of the program by its name in the source: "Foo", "shop::Basket", or "Basket" if only one
  // namespace has it.
  enum class TypeCategory : uint8_t { kStruct, kEnum, kAny, kEnumerator };  // kStruct: also unions and classes
  struct NamedType {
    std::optional<types::TypeId> type = {};
    int64_t value = 0;                         // of an enumerator
    std::vector<std::string> candidates = {};  // full names, if several have the name as their last part
  };
  // Returns the definition in the source file of the code at `address`, else the first one in the program. Requires the
  // same `types` in all calls.
  NamedType find_type(types::Types& types, TypeCategory category, std::string_view name, uint64_t address);

  // Returns the offset of a member of a struct, in bytes.
  std::optional<uint32_t> member_offset(std::string_view type, std::string_view member);

  // Returns the statements of the source files whose path ends with the components of `file`, at a line (0 for all) and
  // a column (0 for all). Each inlined instance is one.
  std::vector<Statement> statements(std::string_view file, uint32_t line, uint32_t column);
  // Returns the statements of the function with code at `address`.
  std::vector<Statement> statements_of(uint64_t address);
  // Returns the first instruction of each inlined instance of a function.
  std::vector<Statement> inlined_copies(std::string_view function);
  // Returns the lines with statements of such source files, for hints.
  std::vector<uint32_t> lines(std::string_view file);
  // Returns all source files with statements.
  std::vector<std::string> files();

 private:
  struct State;
  explicit DebugInfo(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// ---- How long reading debug information for the source lines of stacks may take. Internal to symbols/.

// The CPU time that all files together may take beyond what their sizes explain. Any user can run programs whose debug
// information takes long, and more of them. The end of a run waits for source lines, so after it was requested there is
// a limit for all that they take.
struct SpareTime {
  TimeBudget budget{std::chrono::seconds(1)};
  WorkBudget<std::chrono::nanoseconds> at_end{std::chrono::seconds(5)};
};

// The same for one file: what its size explains, and then of the spare time.
class DebugTime {
 public:
  using Duration = std::chrono::nanoseconds;
  using Moment = TimeBudget::Moment;

  // `is_at_end`: whether the end was requested.
  DebugTime(SpareTime& spare, bool (*is_at_end)()) : spare_(spare), is_at_end_(is_at_end) {}

  // Returns how long the debug information may be read now; `disk_bytes` are the sizes of its files, without holes.
  // Not positive: it should not be read.
  Duration left(uint64_t disk_bytes, Moment now) const;
  void take(Duration time, uint64_t disk_bytes, Moment now);

 private:
  SpareTime& spare_;
  bool (*is_at_end_)();
  Duration taken_ = {};
  Duration from_spare_ = {};  // of `taken_`
};

}  // namespace espy::symbols
