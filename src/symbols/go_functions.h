// Binaries of the Go compiler, and their function table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"
#include "types/type.h"
#include "types/value_location.h"

namespace espy::symbols {

// ---- Binaries of the Go compiler. Go has its own calling convention (registers since 1.17, the stack before), it
// moves stacks to grow them, and a function whose stack must grow runs its prologue again.

class ElfImage;

struct GoBinary {
  std::string version;         // "go1.19.8"; "" if unknown
  bool uses_registers = true;  // for arguments and results
};

// Reads .go.buildinfo; nullopt if there is none.
std::optional<GoBinary> read_go_binary(const ElfImage& image);

// Returns the locations of arguments at the entry of a function, or of results at its return, one for each type;
// nullopt for a value in vector registers. Requires a binary that uses registers, and complete types.
std::vector<std::optional<types::ValueLocation>> go_locations(const types::Types& types, const kernel::Arch& arch,
                                                              const std::vector<types::TypeId>& values);

// Returns the offset of the first instruction after the stack check in a function's prologue; 0 if there is no check. A
// probe there fires once for each call, with all arguments still in place.
uint64_t after_stack_check(const kernel::Arch& arch, std::span<const uint8_t> code);

// ---- The function table of Go binaries (.gopclntab): the runtime needs it for its own stack traces, so it remains
// when a binary is stripped. Internal to symbols/.
//
// Source: golang.org/s/go12symtab, and the packages debug/gosym and runtime for what changed in Go 1.16, 1.18 and 1.20.

class ElfImage;

struct GoFunction {
  std::string_view name;  // in the bytes of the table
  uint64_t address = 0;   // virtual, as linked
  uint64_t size = 0;      // bytes
  uint64_t record = 0;    // of its description, from the start of the table
  // Since Go 1.18:
  bool is_outermost = false;      // no caller is looked for
  bool is_stack_written = false;  // it gives the stack pointer values that its description does not have
};

struct GoLine {
  std::string_view file;  // in the bytes of the table; "" if unknown
  uint32_t line = 0;
};

// From an address on, the stack pointer is this far below its value at the function's first instruction.
struct GoStackDepth {
  uint64_t address = 0;
  int64_t depth_bytes = 0;
  bool operator==(const GoStackDepth&) const = default;
};

// A table in the bytes of a file, which the caller keeps. Bytes that are not a table, or a corrupt table, give no
// functions or fewer.
class GoFunctionTable {
 public:
  // `text` is the address of the first function, for a table with addresses relative to it that does not contain it.
  static std::optional<GoFunctionTable> parse(std::string_view bytes, uint64_t text);

  const std::vector<GoFunction>& functions() const { return functions_; }  // by address
  uint64_t size_bytes() const { return bytes_.size(); }
  // Returns the source line of an address; nullopt if it is in no function.
  std::optional<GoLine> line_at(uint64_t address) const;
  // Whether the table says where stacks end (Go 1.18).
  bool has_flags() const { return layout_.flags_word != 0; }
  // Returns how deep the stack of a function is, by ascending address.
  std::vector<GoStackDepth> stack_depths(const GoFunction& function) const;

 private:
  struct Layout {
    uint8_t quantum = 1;      // of addresses, bytes
    uint8_t word_bytes = 8;   // of pointers
    uint8_t entry_bytes = 8;  // of a number in the list of functions, and of the address in a record
    uint64_t names = 0, units = 0, files = 0, values = 0, list = 0;  // offsets in the table
    uint64_t count = 0;
    uint64_t text = 0;       // added to addresses
    bool has_units = false;  // files are numbered per compilation unit
    uint8_t flags_word = 0;  // of a record, after the address: the kind of the function, then its flags; 0 if unknown
  };

  void read_functions();
  // Calls `part(value, end)` for the parts of the sequence of deltas at `offset`, until it returns false.
  template <class Part>
  void walk(uint64_t offset, uint64_t begin, Part part) const;
  // Returns the value at `address` in such a sequence; nullopt if the sequence ends before.
  std::optional<int64_t> value_at(uint64_t offset, uint64_t begin, uint64_t address) const;
  uint64_t field(const GoFunction& function, uint8_t word) const;  // of its record, after the address
  std::string_view string_at(uint64_t offset) const;
  std::string_view file_name(uint64_t record, int64_t number) const;

  std::string_view bytes_;
  Layout layout_;
  std::vector<GoFunction> functions_;
};

// Returns the table of a Go binary; nullopt if there is none.
std::optional<GoFunctionTable> find_go_functions(const ElfImage& image);

}  // namespace espy::symbols
