// Addresses to names, and names to addresses, for the kernel and for processes.
//
// In go addresses as a probe saw them, with the pid they belong to (as the tracer sees it); out come symbols.
// The Symbolizer keeps what it learnt about each process, so that one which has exited is still named, provided
// somebody said `remember` while it ran. ELF files are shared between all processes that map them.
// Nothing here talks to BPF, prints, or fails loudly: an address without a name is std::nullopt.
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/elf_file.h"

namespace espy::symbols {

struct Symbol {
  std::string name;      // demangled if the options say so
  uint64_t offset = 0;   // bytes from the symbol's start to the address that was asked for
  std::string module;    // kernel: the module, "" for vmlinux; user: the path as the process sees it, "[vdso]", ...
  uint64_t address = 0;  // where the symbol starts, in the memory of its kernel or process
};

// One line of /proc/PID/maps.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;  // first address behind it
  uint64_t file_offset = 0;
  std::string path;     // as the process sees it; "" for anonymous memory, "[vdso]", "[heap]" and their like
  uint64_t device = 0;  // as makedev(3) packs it
  uint64_t inode = 0;
  bool executable = false;
  bool deleted = false;  // the path no longer names this file
};

// The mappings of a live process, in order of address.
Result<std::vector<Mapping>> read_mappings(uint32_t pid);

// Returns the path of the link in /proc/PID/map_files that opens the mapped file, also when it is deleted or in another
// mount namespace. Opening it requires CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
std::string map_files_path(uint32_t pid, const Mapping& mapping);

// The path that a user meant by the target of a uprobe: a path is taken as it is, `bash` is searched in $PATH,
// `libc`, `libssl.so.3` or `c` among the libraries the loader knows. With a pid the files which that process maps
// come first, and the path leads into its mount namespace. "a.apk!/lib/b.so" is a file within an archive.
Result<std::string> resolve_library(std::string_view name_or_path, std::optional<uint32_t> pid = std::nullopt);

// The files that a target with wildcards stands for: a path is matched against the file system, a name against those of
// the files that the process has code from, or, without a pid, any process. Each file once.
std::vector<std::string> find_libraries(const std::string& pattern, std::optional<uint32_t> pid);

// How long what is known of a process' mappings is believed.
enum class CachePolicy {
  kPerPid,      // each process has its own
  kPerProgram,  // processes of one executable share: right if addresses are not randomised, and then cheaper
  kNone,        // read afresh for each address; what `remember` took serves only the dead
};

class Symbolizer {
 public:
  struct Options {
    bool demangle_cpp = true;  // and Rust
    CachePolicy cache = CachePolicy::kPerPid;
    std::string kernel_symbols = "/proc/kallsyms";                    // or a file like it
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};  // of separate debug files
  };

  Symbolizer();
  explicit Symbolizer(const Options& options);
  // Chooses anew how names are shown and how long mappings are believed; before the first question.
  void configure(bool demangle_cpp, CachePolicy cache);
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // The kernel's function or variable at or before `address`. The first call reads /proc/kallsyms (tens of ms).
  std::optional<Symbol> kernel(uint64_t address);
  // Some milliseconds of that work, for who has nothing better to do; false once it is done.
  bool read_kernel_ahead();
  // The address of a kernel symbol; reads /proc/kallsyms only up to its first line with that name.
  // Nothing also where the kernel hides addresses from us (kptr_restrict).
  std::optional<uint64_t> kernel_address(std::string_view name);

  // The function that a process has at `address`: from its ELF files, the vdso, or a JIT's perf-PID.map.
  std::optional<Symbol> user(uint32_t pid, uint64_t address);
  // What the source has there, the innermost inlined copy first, with names as `user` shows them; nothing without debug
  // information.
  std::vector<SourceFrame> source(uint32_t pid, uint64_t address);
  // Where that is in a file that has a build id.
  struct FilePlace {
    std::string build_id;  // in hexadecimal
    uint64_t offset = 0;   // bytes from the file's start
  };
  std::optional<FilePlace> file_place(uint32_t pid, uint64_t address);
  // The file (or "[vdso]", ...) mapped there, also where no symbol is known. Only executable mappings are kept.
  std::optional<std::string> user_module(uint32_t pid, uint64_t address);
  // What to add to the linked addresses of a file (ElfSymbol::address) in that process' memory; `path` is one of ours.
  // Nothing where the process does not map code from it.
  std::optional<uint64_t> load_bias(uint32_t pid, const std::string& path);
  // Takes down the process' mappings now (some 50 us); a process that is gone keeps what was taken before.
  void remember(uint32_t pid);
  // One mapping that somebody else has seen; for a process that is gone before its mappings could be taken down.
  void remember_mapping(uint32_t pid, Mapping mapping);
  // Drops what is known of a process, for tracers that run for weeks.
  void forget(uint32_t pid);

  // The ELF file at a path of ours, shared with the symbolizer's own until somebody replaces the file.
  Result<std::shared_ptr<const ElfFile>> elf_file(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace espy::symbols
