// What a program's debug information tells of a place in its code: variables with their types and where they lie, the
// function's arguments and result, the lines of the source.
//
// In go linked addresses of one binary; out come plain values. All DWARF is read behind this door (symbols/dwarf/), on
// demand: opening reads no more than a few headers. What cannot be had at a place is told with the reason, and with the
// lines where it can.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/arch/arch.h"
#include "types/type.h"
#include "types/value_location.h"

namespace espy::symbols {

class ElfImage;

// Lines of a source file at which a variable can be read.
struct ReadableLines {
  std::string text;  // "lines 12-15, 18"; "" for nowhere
  std::string file;  // as the compiler knew it
  uint32_t first = 0;
};

struct DebugVariable {
  std::string name;
  std::string c_type;  // "const char *"
  types::TypeId type;
  std::optional<types::ValueLocation> place;
  std::string why;         // without a place, or with one that lacks parts: "is optimised out here"
  ReadableLines readable;  // without a place: where it has one
};

// A statement to stop at.
struct Statement {
  uint64_t address = 0;  // linked
  std::string file;      // as the compiler knew it
  uint32_t line = 0;
  uint32_t column = 0;
  std::string function;      // whose line it is, demangled
  std::string inlined_into;  // the function that has the code, where that is another one; else ""
};

// What the source has at an address: the function that has the code there, or one of which an inlined copy is there.
struct SourceFrame {
  std::string function;  // as linkers know it, where the compiler says that; "" in assembly
  std::string file;      // the path of its source; "" where nothing tells
  uint32_t line = 0;     // of the code, or of the call that the frame before was made of
  bool is_inlined = false;
};

class DebugInfo {
 public:
  // Of a binary, or of its separate debug file. The error says how to get debug information where there is none.
  static Result<std::shared_ptr<DebugInfo>> open(const ElfImage& image,
                                                 const std::vector<std::string>& debug_directories);
  ~DebugInfo();

  // Whether a function is described that has code at the address.
  bool knows(uint64_t address) const;
  // The innermost inlined copy at the address first, the function last; nothing where none is described.
  std::vector<SourceFrame> frames_at(uint64_t address);
  // The arguments of the function at `address`, as they lie there; where `inlined` names a function of which an inlined
  // copy is there, that one's. Types go into `types`, which must always be the same one.
  std::vector<DebugVariable> arguments(types::Types& types, uint64_t address, std::string_view inlined);
  // All other variables that are visible there, the innermost of each name.
  std::vector<DebugVariable> locals(types::Types& types, uint64_t address, std::string_view inlined);
  // What the function that begins at `address` returns, when it does; nothing for void.
  std::optional<DebugVariable> result(types::Types& types, uint64_t address);

  // Where a struct has a member, in bytes.
  std::optional<uint32_t> member_offset(std::string_view type, std::string_view member);

  // The statements of a file that goes by `file` (its name, or the end of its path) at a line, 0 for all of them, and
  // at a column, 0 for any; each inlined copy is one.
  std::vector<Statement> statements(std::string_view file, uint32_t line, uint32_t column);
  // Those of the function that has code at `address`.
  std::vector<Statement> statements_of(uint64_t address);
  // Where the inlined copies of a function begin.
  std::vector<Statement> inlined_copies(std::string_view function);
  // Lines of that file that have statements, for hints.
  std::vector<uint32_t> lines(std::string_view file);
  // All source files with statements.
  std::vector<std::string> files();

 private:
  struct State;
  explicit DebugInfo(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace espy::symbols
