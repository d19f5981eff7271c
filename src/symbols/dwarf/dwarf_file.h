// The DWARF of a binary, read with libdw: compilation units, functions by address, call frame information.
#pragma once

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols::dwarf {

// ---- Handles of libdw, whose memory may run out. Internal to dwarf/.

// Opens the debug information of an ELF file; null if it has none. Where libdw runs out of memory, its functions throw
// std::bad_alloc instead of ending the process; then the handle can only be closed.
Dwarf* begin_dwarf(Elf* elf);
// The same for a handle that libdw has opened by itself.
void throw_if_out_of_memory(Dwarf* dwarf);

// ---- The DWARF of a binary, read with libdw: compilation units, functions by address, call frame information.
// Internal to dwarf/; others use symbols/debug_info.h.

// ---- Attributes. All but `own_attribute` follow DW_AT_abstract_origin and DW_AT_specification.

std::optional<Dwarf_Attribute> attribute(const Dwarf_Die& die, unsigned name);
std::optional<Dwarf_Attribute> own_attribute(const Dwarf_Die& die, unsigned name);
std::optional<uint64_t> number(const Dwarf_Die& die, unsigned name);
// Whether the form of a constant has a sign.
bool is_signed(const Dwarf_Attribute& constant);
// Returns the 64 bits of a constant, extended by that sign or with zeros.
std::optional<int64_t> integer(const Dwarf_Attribute& constant);
std::optional<Dwarf_Die> unit_of(const Dwarf_Die& die);
bool flag(const Dwarf_Die& die, unsigned name);
// Names are cut at 8 KiB; "" if there is none.
std::string_view name_of(const Dwarf_Die& die);
std::string_view linkage_name(const Dwarf_Die& die);  // as in symbol tables
// Returns the compiler of a unit with its options: "Go cmd/compile go1.19.8; regabi".
std::string_view producer_of(const Dwarf_Die& die);
std::optional<Dwarf_Die> reference(const Dwarf_Die& die, unsigned name);
std::vector<Dwarf_Die> children(const Dwarf_Die& die);
// Returns the first children, `limit` at most: a DIE can have a million, and many others can refer to it.
std::vector<Dwarf_Die> first_children(const Dwarf_Die& die, size_t limit);
// A DIE, and where its descendants end, in the memory of libdw; null: at the end of the section.
struct Subtree {
  Dwarf_Die die;
  const void* end = nullptr;
};
// Returns the children that begin before the end of the scope. In well-formed debug information these are all of them;
// in other, descendants of one child may be descendants of the next, too, and a walk takes exponential time.
std::vector<Subtree> child_subtrees(const Subtree& scope);
int tag(const Dwarf_Die& die);
// The code [low, high), in virtual addresses as linked.
struct Range {
  uint64_t low = 0;
  uint64_t high = 0;
  bool contains(uint64_t address) const { return address >= low && address < high; }
};
struct RangeList {
  std::vector<Range> ranges;
  size_t steps = 0;  // entries that were read, including entries of discarded code
};
RangeList range_list_of(const Dwarf_Die& die);
std::vector<Range> ranges_of(const Dwarf_Die& die);
std::optional<Range> first_range(const Dwarf_Die& die);

// Ranges in order of address, for many look-ups.
class SortedRanges {
 public:
  explicit SortedRanges(std::vector<Range> ranges);
  bool contains(uint64_t address) const;
  bool empty() const { return ranges_.empty(); }
  uint64_t lowest() const { return ranges_.front().low; }  // requires that there are some

 private:
  std::vector<Range> ranges_;  // sorted, disjoint
};

// One range of the code of a function that is not inlined.
struct FunctionCode {
  Range range;
  Dwarf_Die die;
};

struct Unit {
  Dwarf_Die die;
  std::vector<Range> ranges;
  bool is_skeleton = false;       // `die` has the ranges and lines, a .dwo file that is not read yet the rest
  std::string missing_part = {};  // that file, if it is not found
  bool is_indexed = false;
  std::vector<FunctionCode> functions;  // sorted by address
};

// A range of the code of a unit. Ranges of several units can overlap.
struct UnitCode {
  Range range;
  size_t unit = 0;
  uint64_t highest = 0;  // where the code of this and of all earlier ones ends
};

// A copy of a function that GCC has made for some of its calls. It lacks arguments that all of these pass alike
// (.constprop), or has others, and perhaps no result (.isra, .part: GCC, ipa-sra.cc, ipa-split.cc).
enum class Clone : uint8_t { kNone, kOfArguments, kOfResult };

class Calls;
class Package;
struct SplitFile;
class SplitFiles;

// What a function reads is there as a whole afterwards, or, if it throws TookTooLong, not at all: the next call reads
// it anew.
class File {
 public:
  // Opens the DWARF of a binary or of its separate debug file. An error has a hint how to get debug information.
  static Result<std::unique_ptr<File>> open(const ElfImage& image, const std::vector<std::string>& debug_directories);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Returns how much memory the sections of debug information take.
  uint64_t memory_bytes() const { return memory_bytes_; }
  // Returns how much memory the sections, and all that is made of them, may take.
  uint64_t max_bytes() const { return max_bytes_; }
  // Returns how much of the disk the program takes, and the debug information that was found in other files so far. Any
  // file can have the name of one of them.
  uint64_t disk_bytes() const;
  const std::string& path() const { return path_; }  // of the file that has the DWARF
  bool is_position_independent() const { return is_position_independent_; }

  std::vector<Unit>& units();
  void complete(Unit& unit);  // reads the .dwo file of a skeleton
  Unit* unit_at(uint64_t address);
  const std::vector<FunctionCode>& functions(Unit& unit);
  // Returns the function with code at an address.
  std::optional<FunctionCode> function_at(uint64_t address);
  // Returns the same if the functions of its unit were read before; otherwise nullopt.
  std::optional<FunctionCode> known_function_at(uint64_t address);
  // A location expression.
  struct Expression {
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    std::shared_ptr<void> owner = nullptr;  // keeps the operations alive
  };
  // Returns the CFA from .debug_frame or .eh_frame; nullopt if neither covers the address.
  std::optional<Expression> frame_address(uint64_t address);
  // Returns the location of the caller's value of a register while the code is at `address`. An expression without
  // operations means that the register is unchanged; nullopt that there is no rule.
  std::optional<Expression> callers_register(uint64_t address, int number);
  // Whether it is an executable, whose functions cannot be interposed by functions of other files.
  bool is_executable();
  // Returns the PT_TLS segment; nullopt if there is none.
  std::optional<GElf_Phdr> thread_local_segment();
  Calls& calls();  // the call sites of its functions
  // Returns what the symbols of the function that begins at an address say of it.
  Clone clone_at(uint64_t address) { return symbols_of_code().clone_at(address); }
  // Whether it may be called from other files, so that its calling convention is kept.
  bool is_global(uint64_t address) { return std::ranges::binary_search(symbols_of_code().global, address); }
  // Returns how many places took too long to locate.
  int& slow_places() { return slow_places_; }
  // Returns false if no type, variable or function of the file can have this name.
  bool mentions(std::string_view name);
  // Returns false if the line table of a unit, which has its source files too, is missing, malformed or too large to be
  // read by libdw.
  bool has_bounded_lines(const Dwarf_Die& unit);
  bool has_refused_parts() const;  // a line table or .dwo files that are too large
  // Searches all units for the definition of a type that another unit only declares.
  std::optional<Dwarf_Die> find_definition(int tag, std::string_view name);

 private:
  struct Opened {
    OwnedFd fd;
    std::deque<std::string> unpacked = {};  // contents of sections, which `elf` refers to
    Elf* elf = nullptr;
  };
  static bool unpack(Opened& opened);
  File() = default;
  static Opened open_elf(const ElfImage& image);
  std::vector<std::shared_ptr<Dwarf_Frame>> frames_at(uint64_t address);
  Dwarf* begin(const Opened& opened) const;
  void add_supplement(const std::vector<std::string>& debug_directories);
  SplitFile* find_split_file(const std::string& name, const std::string& compiled, uint64_t id);
  void index_functions(Unit& unit);
  Unit* known_unit_at(uint64_t address);
  bool has_bounded_table(const Dwarf_Die& unit);
  bool is_bounded(std::string_view line_section, uint64_t offset);
  struct Functions {
    std::vector<FunctionCode> code;
    size_t range_steps_left = 0;
  };
  struct CodeSymbols {
    std::map<uint64_t, Clone> clones;  // by address
    std::vector<uint64_t> global;      // addresses, sorted

    Clone clone_at(uint64_t address) const {
      const auto found = clones.find(address);
      return found == clones.end() ? Clone::kNone : found->second;
    }
  };
  static void add_code_symbols(Elf* elf, CodeSymbols& out);
  const CodeSymbols& symbols_of_code();
  static void add_function(const Dwarf_Die& die, Functions& out);
  static void add_functions(const Subtree& parent, Functions& out, int depth);

  std::string path_;
  uint64_t memory_bytes_ = 0;
  uint64_t max_bytes_ = 0;
  uint64_t disk_bytes_ = 0;     // without .dwo files
  uint64_t package_bytes_ = 0;  // of package_, until they are counted
  bool is_position_independent_ = false;
  Opened code_;                       // the binary: has .eh_frame
  Opened debug_;                      // the separate debug file, if any
  std::unique_ptr<Package> package_;  // of .dwo files
  std::unique_ptr<SplitFiles> split_files_;
  Opened supplement_;                           // the file that several debug files share (.gnu_debugaltlink)
  std::unique_ptr<std::string> no_supplement_;  // instead of one that is not found
  Dwarf* supplement_dwarf_ = nullptr;
  Dwarf* dwarf_ = nullptr;
  bool has_unread_eh_frame_ = false;
  Dwarf_CFI* eh_frame_ = nullptr;
  std::unique_ptr<Calls> calls_;
  std::optional<CodeSymbols> code_symbols_;
  int slow_places_ = 0;
  bool has_read_units_ = false;
  bool has_split_units_ = false;  // parts are in .dwo files
  std::vector<Unit> units_;
  std::vector<UnitCode> unit_code_;                                  // sorted by address
  std::map<const void*, Dwarf_Die> skeletons_;                       // by the unit of the .dwo file
  size_t range_steps_left_ = 0;                                      // of the lists of units and functions
  std::map<const void*, bool> bounded_lines_;                        // by unit: has_bounded_lines
  std::map<std::pair<const void*, uint64_t>, bool> bounded_tables_;  // by section and offset: is_bounded
  uint64_t line_bytes_ = 0;                                          // of these tables
  bool has_met_large_lines_ = false;
};

}  // namespace espy::symbols::dwarf
