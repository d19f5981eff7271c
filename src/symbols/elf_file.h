// The functions and objects that an ELF file defines: names, virtual addresses and file offsets.
//
// Symbols come from .symtab, or else from .dynsym plus a separate debug file, the compressed .gnu_debugdata, or the
// table of functions of Go. The file stays mapped for the life of the ElfFile. Functions are indexed by address on the
// first lookup that needs it. DWARF is read by DebugInfo only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"
#include "symbols/go_functions.h"

namespace espy::symbols {

class ElfImage;

// The version of the library that reads ELF and DWARF, such as "0.188".
std::string_view elfutils_version();

struct ElfSymbol {
  std::string name;          // as in the symbol table, without `@VERSION`
  uint64_t address = 0;      // virtual address, as linked: relative to the load bias for PIE and libraries
  uint64_t file_offset = 0;  // as uprobes take it; 0 if the symbol has no bytes in the file (.bss)
  uint64_t size = 0;         // bytes; 0 if unknown
  bool is_ifunc = false;     // the code at `address` is a resolver that returns the real function
  bool is_local = false;     // `static`, or hidden by the linker

  bool operator==(const ElfSymbol&) const = default;
};

class ElfFile {
 public:
  // Opens the file. Separate debug files are searched for in the directory of the file and in
  // `debug_directories`.
  static Result<ElfFile> open(const std::string& path, std::vector<std::string> debug_directories = {"/usr/lib/debug"});
  static Result<ElfFile> open(UntrustedFile file, std::vector<std::string> debug_directories);
  // The same for an image in memory, such as the vdso. `name` is returned as its path.
  static Result<ElfFile> from_image(std::string image, std::string name);

  ElfFile(ElfFile&&) noexcept;
  ElfFile& operator=(ElfFile&&) noexcept;
  ~ElfFile();

  const std::string& path() const;
  // The GNU build id in lower-case hex; "" if there is none.
  const std::string& build_id() const;
  // True for a PIE or a shared library, whose virtual addresses are relative to the load bias.
  bool is_position_independent() const;
  bool is_64bit() const;
  // The file on disk, which may be an archive, when it was opened; unknown for an image in memory.
  const FileState& file_state() const;
  uint64_t offset_in_archive() const;  // bytes; 0 unless the path leads into an archive
  uint16_t machine() const;            // EM_X86_64, EM_AARCH64, ...
  // Searches for the separate file with the rest of the symbols. Returns its path; "" if there is none.
  std::string debug_file_path() const;
  // Whether only exported functions have names: there is neither a .symtab nor another source of symbols.
  bool is_stripped() const;

  // Why lookups so far skipped names, a kRefusedFile; nullopt if none were.
  const std::optional<Error>& missing_names() const;

  // Returns about how much memory the file takes.
  uint64_t memory_bytes() const;

  // The DWARF of the file or of its separate debug file, opened on the first call.
  Result<std::shared_ptr<DebugInfo>> debug_info() const;

  // Returns the source line of an address of a Go binary, from the table of the Go runtime; nullopt if there is none.
  std::optional<SourceFrame> go_frame_at(uint64_t address) const;

  // nullopt unless the Go compiler made the file.
  const std::optional<GoBinary>& go_binary() const;

  // Returns the function of that name. Prefers global symbols to local ones, and .symtab to .dynsym to a separate debug
  // file.
  std::optional<ElfSymbol> find_function(std::string_view name) const;
  // Returns the variable of that name. Thread-local variables are not found.
  std::optional<ElfSymbol> find_object(std::string_view name) const;
  // Returns the addresses of the variables that have each of the names: several if source files have `static` ones of
  // one name. Names without a variable are skipped.
  std::map<std::string, std::set<uint64_t>> object_addresses(const std::set<std::string, std::less<>>& names) const;

  // Returns all functions whose symbol name matches the glob, aliases included, sorted by name and without duplicates.
  std::vector<ElfSymbol> functions(std::string_view glob = "*") const;
  // Returns all functions whose demangled name matches the glob: `ns::f` finds all overloads, `ns::f(int)` one.
  std::vector<ElfSymbol> functions_by_demangled_name(std::string_view glob) const;

  // Returns the names of all functions that begin at a virtual address, sorted.
  std::vector<std::string> functions_beginning_at(uint64_t address) const;
  // Returns the functions of just that name, which may look like a glob.
  std::vector<ElfSymbol> functions_named(std::string_view name) const;

  // Returns the function that covers a virtual address; of aliases, the name with the fewest leading underscores.
  std::optional<ElfSymbol> function_at(uint64_t address) const;
  std::optional<ElfSymbol> function_at_offset(uint64_t file_offset) const;

  // Returns bytes of the file; empty if they are not all within it.
  std::string bytes_at(uint64_t file_offset, uint64_t size) const;

  // For other readers of symbols/.
  const ElfImage& image() const;

  // See ElfImage.
  std::optional<uint64_t> offset_of_address(uint64_t address) const;
  std::optional<uint64_t> address_of_offset(uint64_t file_offset) const;
  // The segment that loads the byte at an offset of the file.
  struct LoadedSegment {
    uint64_t address = 0;  // virtual, as linked
    uint64_t size_bytes = 0, file_offset = 0;
  };
  std::optional<LoadedSegment> segment_at_offset(uint64_t file_offset) const;

 private:
  struct State;
  explicit ElfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// ---- USDT probes of an ELF file, and the operands of their arguments.
//
// The section .note.stapsdt has a note for each place that a probe is compiled to; a probe in an inlined function has
// several. Operands are in the syntax of the assembler. Format: "UserSpaceProbeImplementation" in the SystemTap wiki.

struct UsdtLocation {
  std::string provider;
  std::string name;
  std::string arguments;               // SIZE@OPERAND, separated by spaces
  uint64_t address = 0;                // virtual, after prelinking
  uint64_t file_offset = 0;            // of the instruction
  uint64_t semaphore_file_offset = 0;  // 0: none
};

// Returns all notes in the order of the file; empty if there are none.
std::vector<UsdtLocation> read_usdt(const ElfFile& file);

using kernel::UsdtOperand;

// Parses an argument: `SIZE@OPERAND`, with a negative size for signed values and an `f` after the size for floating
// point. Returns nullopt for operands with a segment register and for malformed ones. The register name is not
// validated.
std::optional<UsdtOperand> parse_usdt_operand(const kernel::Arch& arch, std::string_view text);

// Splits the arguments of a note. Operands can contain spaces, so an argument begins at a size and `@`.
std::vector<std::string> split_usdt_arguments(std::string_view text);

}  // namespace espy::symbols
