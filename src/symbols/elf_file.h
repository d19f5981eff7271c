// One ELF file, as far as tracing asks: which functions and objects it defines, and where.
//
// In goes a path (or an image in memory, as the vdso is); out come names, virtual addresses and file offsets.
// Symbols come from .symtab, else from .dynsym together with what a separate debug file or the compressed
// .gnu_debugdata add. The file stays mapped; names are views into that mapping and live as long as the ElfFile.
// Nothing is indexed before a question needs it, and only functions are ever indexed. DWARF is read by DebugInfo alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"
#include "symbols/go.h"

namespace espy::symbols {

struct ElfSymbol {
  std::string name;          // as the linker knows it, without `@VERSION`
  uint64_t address = 0;      // virtual address, as linked: relative to the load bias for PIE and libraries
  uint64_t file_offset = 0;  // what uprobes want; 0 for what is not in the file (.bss)
  uint64_t size = 0;         // bytes; 0 where the file does not say
  bool is_ifunc = false;     // the code at `address` is a resolver that returns the real function
  bool is_local = false;     // `static`, or hidden by the linker

  bool operator==(const ElfSymbol&) const = default;
};

class ElfFile {
 public:
  // Opens and maps the file; errors say in a sentence what is wrong with it.
  // Where separate debug files are looked for besides the file's own directory is in `debug_directories`.
  static Result<ElfFile> open(const std::string& path, std::vector<std::string> debug_directories = {"/usr/lib/debug"});
  // The same for an image that is already in memory; `name` stands for the path.
  static Result<ElfFile> from_image(std::string image, std::string name);

  ElfFile(ElfFile&&) noexcept;
  ElfFile& operator=(ElfFile&&) noexcept;
  ~ElfFile();

  const std::string& path() const;
  // Lower-case hex of the GNU build id, "" if there is none.
  const std::string& build_id() const;
  // Whether the kernel may load it anywhere: a PIE or a shared library. Otherwise virtual addresses are final.
  bool is_position_independent() const;
  bool is_64bit() const;
  uint64_t start_in_file() const;  // see ElfImage
  uint16_t machine() const;        // EM_X86_64, EM_AARCH64, ...
  // The separate file that completed the symbols, "" if none did. Looking for it is part of the question.
  std::string debug_file_path() const;

  // What the DWARF of the file, or of its separate debug file, tells. Opened at the first question.
  Result<std::shared_ptr<DebugInfo>> debug_info() const;

  // What the Go compiler says of itself in its binaries; nothing in others.
  const std::optional<GoBinary>& go_binary() const;

  // The function of that name: global before local, .symtab before .dynsym before a separate debug file.
  std::optional<ElfSymbol> find_function(std::string_view name) const;
  // The variable of that name, for uaddr("name"); thread-local ones have no one address and are not found.
  std::optional<ElfSymbol> find_object(std::string_view name) const;

  // Every function whose linker name matches the glob, sorted by name, one of each name. Aliases are all there.
  std::vector<ElfSymbol> functions(std::string_view glob = "*") const;
  // Every function whose demangled name matches: `ns::f` finds all overloads, `ns::f(int)` one; globs too.
  std::vector<ElfSymbol> functions_by_demangled_name(std::string_view glob) const;

  // The function that covers a virtual address. Among aliases the name with the fewest leading underscores.
  std::optional<ElfSymbol> function_at(uint64_t address) const;
  std::optional<ElfSymbol> function_at_offset(uint64_t file_offset) const;

  // The file's own bytes, say of a function; empty where they are not all there.
  std::string_view bytes_at(uint64_t file_offset, uint64_t size) const;

  // Through the program headers; nothing where no loaded segment covers the place.
  std::optional<uint64_t> offset_of_address(uint64_t address) const;
  std::optional<uint64_t> address_of_offset(uint64_t file_offset) const;

 private:
  struct State;
  explicit ElfFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace espy::symbols
