// The DWARF of one binary as libdw gives it: compilation units, functions by address, call frame information.
// Inside this folder only; the door is symbols/debug_info.h.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

// ---- Attributes, also those that a copy has from its original (DW_AT_abstract_origin, DW_AT_specification)

std::optional<Dwarf_Attribute> attribute(const Dwarf_Die& die, unsigned name);
std::optional<Dwarf_Attribute> own_attribute(const Dwarf_Die& die, unsigned name);
std::optional<uint64_t> number(const Dwarf_Die& die, unsigned name);
std::optional<Dwarf_Die> unit_of(const Dwarf_Die& die);
bool flag(const Dwarf_Die& die, unsigned name);
std::string_view name_of(const Dwarf_Die& die);       // "" where it has none
std::string_view linkage_name(const Dwarf_Die& die);  // as symbol tables have it; "" where that is its name
std::optional<Dwarf_Die> reference(const Dwarf_Die& die, unsigned name);
std::vector<Dwarf_Die> children(const Dwarf_Die& die);
int tag(const Dwarf_Die& die);
bool covers(const Dwarf_Die& die, uint64_t address);

// Code, [low, high), in linked addresses.
struct Range {
  uint64_t low = 0;
  uint64_t high = 0;
  bool contains(uint64_t address) const { return address >= low && address < high; }
};
std::vector<Range> ranges_of(const Dwarf_Die& die);

// A function that has code of its own, by one of its pieces of code.
struct FunctionCode {
  Range range;
  Dwarf_Die die;
};

struct Unit {
  Dwarf_Die die;
  std::vector<Range> ranges;
  bool is_indexed = false;
  std::vector<FunctionCode> functions;  // by address
};

class Calls;

class File {
 public:
  // The binary's own DWARF, or that of its separate debug file; the error says that there is none, and how to get it.
  static Result<std::unique_ptr<File>> open(const ElfImage& image, const std::vector<std::string>& debug_directories);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }  // of the file that has the DWARF
  bool is_position_independent() const { return is_position_independent_; }

  std::vector<Unit>& units();
  Unit* unit_at(uint64_t address);
  const std::vector<FunctionCode>& functions(Unit& unit);
  // The function whose code covers the address.
  std::optional<FunctionCode> function_at(uint64_t address);
  // The frame's address as a location expression, from .debug_frame or .eh_frame; null where neither knows.
  struct Expression {
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    std::shared_ptr<void> owner = nullptr;  // of the operations
  };
  std::optional<Expression> frame_address(uint64_t address);
  // Where a register's value in the caller is to be found while the code is at `address`: by the expression (of no
  // operations: in the register, as it was), or nothing of it is said.
  std::optional<Expression> callers_register(uint64_t address, int number);
  // Whether its functions may stand for those of libraries, but not others for them.
  bool is_executable();
  // What each thread has of its own of the file: that segment; nothing where it has none.
  std::optional<GElf_Phdr> thread_local_segment();
  Calls& calls();  // that its functions make
  // A struct's definition elsewhere, for one that a unit only names.
  std::optional<Dwarf_Die> find_definition(int tag, std::string_view name);

 private:
  struct Opened {
    OwnedFd fd;
    Elf* elf = nullptr;
  };
  File() = default;
  static Opened open_elf(const std::string& path);
  std::vector<std::shared_ptr<Dwarf_Frame>> frames_at(uint64_t address);
  void index_functions(Unit& unit);
  void add_functions(const Dwarf_Die& parent, Unit& unit, int depth);

  std::string path_;
  bool is_position_independent_ = false;
  Opened code_;   // the binary: has .eh_frame
  Opened debug_;  // where separate
  Dwarf* dwarf_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;
  std::unique_ptr<Calls> calls_;
  bool has_read_units_ = false;
  std::vector<Unit> units_;
};

}  // namespace espy::symbols::dwarf
