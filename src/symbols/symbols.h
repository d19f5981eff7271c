// symbols: facts about addresses from files of programs and the kernel, such as names, lines, types and unwind tables.
//
// Pids are numbers in the tracer's namespace. An address of a process may have a program::CodeTag, which identifies the
// code there at the time of the capture. The Symbolizer keeps the mappings of each process, so that addresses can be
// symbolized after it has exited if `remember` was called before. ELF files are shared between processes. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/elf_file.h"

namespace espy::symbols {

struct Symbol {
  std::string name;      // demangled if the options ask for it
  uint64_t offset = 0;   // of the requested address, in bytes from the start of the symbol
  std::string module;    // kernel: the module, "" for vmlinux; user: the path as the process sees it, "[vdso]", ...
  uint64_t address = 0;  // of the start of the symbol, in memory
};

// One line of /proc/PID/maps.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;  // exclusive
  uint64_t file_offset = 0;
  std::string path;     // as the process sees it; "" for anonymous memory; or "[vdso]", "[heap]", ...
  uint64_t device = 0;  // as makedev(3) packs it
  uint64_t inode = 0;
  uint64_t seen_ns = 0;  // when it was there, since 1970; 0: not known
  bool executable = false;
  bool may_have_probes = true;  // it is private and not writable (valid_vma in kernel/events/uprobes.c)
  bool deleted = false;         // the file has been unlinked
};

// Returns the id of a thread of the process that still has its memory, for which /proc/ID has maps, root and exe. It is
// the first thread or, after it has ended, another one.
uint32_t task_with_memory(uint32_t pid);

// Returns the mappings of a live process in order of address.
Result<std::vector<Mapping>> read_mappings(uint32_t pid);

// Whether a file with this inode number from stat(2) can be the one that the kernel knows by `mapped`. A file of
// overlayfs may have the number of the lower file, which stat(2) marks in the highest bits ("xino"). Devices cannot be
// compared: on btrfs and overlayfs, stat(2) has others than the kernel.
bool is_mapped_inode(uint64_t inode, uint64_t mapped);

// Calls `visit` with each executable mapping of a file in a live process, in order of address, until it returns false.
// Reads at most `most_bytes` of the text that describes all mappings: a process can make this text long, with 4 KB for
// each of 65,530 mappings. Returns how many bytes it has read.
Result<uint64_t> visit_mapped_code(uint32_t pid, uint64_t most_bytes,
                                   const std::function<bool(const Mapping& mapping)>& visit);

// Returns the executable mapping of a file that contains the address, without reading the text of the others. Fails
// with ENOTTY before Linux 6.11, with ENOENT if there is none.
Result<Mapping> query_mapped_code(uint32_t pid, uint64_t address);

// Returns the path of the link in /proc/PID/map_files that opens the file mapped at [start, end), also when it is
// deleted or in another mount namespace. Opening it requires CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
std::string map_files_path(uint32_t pid, uint64_t start, uint64_t end);

// Resolves the target of a uprobe to a path. A path is returned as it is, `bash` is searched in $PATH, and `libc`,
// `libssl.so.3` or `c` among the libraries of the dynamic loader. With a pid, files that the process maps are
// preferred, and the path leads into its mount namespace. "a.apk!/lib/b.so" is a file within an archive. Libraries are
// those for `arch`.
Result<std::string> resolve_library(std::string_view name_or_path, std::optional<uint32_t> pid = std::nullopt,
                                    const kernel::Arch& arch = kernel::host_arch());

// Expands a target with wildcards to files, each once. A path is matched against the file system. A name is matched
// against the files in $PATH, and against the files that the process (or, without a pid, any process) has mapped as
// code.
std::vector<std::string> find_libraries(const std::string& pattern, std::optional<uint32_t> pid);

// Returns the error (ESTALE) for a file that changed between the reading of its symbols and the attaching of its
// probes.
tl::unexpected<Error> changed_while_prepared(const std::string& path, const FileState& read, const FileState& now);

// Files that would have given names to addresses, but were refused (base/untrusted_file.h), such as a perf map that
// belongs to another user.
struct SkippedFiles {
  std::set<std::string> reasons;  // a sentence with the path of the file; the first thousand

  void add(const Error& error);  // ignores other errors
};

// How long the mappings of a process are cached.
enum class CachePolicy {
  kPerPid,      // for each process
  kPerProgram,  // shared by processes of one executable, which is cheaper; requires that addresses are not randomised
  kNone,        // read for each address; those taken by `remember` are only used for processes that have exited
};

class Symbolizer {
 public:
  struct Options {
    bool demangle_cpp = true;  // also Rust
    CachePolicy cache = CachePolicy::kPerPid;
    // Beyond it the snapshots that were not used for longest are dropped, and so is what events reported of as many
    // processes. A process of some mappings takes less than 1 KB.
    size_t max_processes = 16384;
    // The same for the least recently used files of the processes: this many read files, and as many open files. Open
    // files are deleted or in another mount namespace. Half of these may belong to one process. Each takes a
    // descriptor, and at most half of all that there are.
    size_t max_files = 512;
    // Beyond it large files and perf maps that were not used for longest are dropped, then processes.
    uint64_t max_memory_bytes = max_binary_bytes();
    // After the end of the run was requested (base/end_request.h), mappings are not read any more after this total wait
    // for all processes. CPU time does not count.
    uint64_t max_wait_at_end_ns = 1'000'000'000;
    std::string kernel_symbols = "/proc/kallsyms";                    // or a file of that format
    std::vector<std::string> debug_directories = {"/usr/lib/debug"};  // of separate debug files
  };

  Symbolizer();
  explicit Symbolizer(const Options& options);
  // Changes two of the options. Requires that nothing has been looked up yet.
  void configure(bool demangle_cpp, CachePolicy cache);
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;
  ~Symbolizer();

  // Returns the kernel symbol at or before `address`. The first call reads /proc/kallsyms (tens of ms).
  std::optional<Symbol> kernel(uint64_t address);
  // Does a few milliseconds of that work ahead of time. Returns false once it is complete.
  bool read_kernel_ahead();
  // Returns whether `kernel` found nothing because the kernel hides all addresses.
  bool has_hidden_kernel() const;

  // Returns the function of a process at `address`, from its ELF files, the vdso, or the perf-PID.map of a JIT.
  std::optional<Symbol> user(uint32_t pid, uint64_t address);
  // A process whose code was made at run time, by a JIT compiler, and had no name in a perf map.
  struct UnnamedJit {
    uint32_t pid = 0;
    std::string program;        // the name of its executable
    std::string perf_map_path;  // the path of the map, in the view of the process
  };
  // Returns the first such process that `user` met.
  const std::optional<UnnamedJit>& unnamed_jit() const;
  // Returns the source frames at `address`, innermost inlined function first, with names as from `user`; empty without
  // debug information.
  std::vector<SourceFrame> source(uint32_t pid, uint64_t address);
  // The position of an address in a file with a build id; nullopt if it is in no such file.
  struct BuildIdOffset {
    std::string build_id;  // in hexadecimal
    uint64_t offset = 0;   // in the file, bytes
  };
  std::optional<BuildIdOffset> build_id_offset(uint32_t pid, uint64_t address);
  // The executable mapping at an address, also if there is no symbol.
  struct Module {
    std::string path;                      // as the process sees it; "[vdso]", ...
    std::optional<uint64_t> address = {};  // in the file, as linked, or from the start of a mapping without a file
  };
  // nullopt for code that was made at run time, and for addresses of no code.
  std::optional<Module> user_module(uint32_t pid, uint64_t address);
  // The segment of the file that has the code at an address; nullopt if it is in no file that can be read.
  struct CodeSegment {
    std::string build_id;  // in hexadecimal; "" if the file has none
    uint64_t address = 0;  // as linked
    uint64_t size_bytes = 0, file_offset = 0;
  };
  std::optional<CodeSegment> code_segment(uint32_t pid, uint64_t address);
  // Returns the difference between addresses in the memory of the process and those in the file (ElfSymbol::address).
  // `path` is in the tracer's mount namespace. nullopt if the process maps no code from the file.
  std::optional<uint64_t> load_bias(uint32_t pid, const std::string& path);
  // Reads the mappings of the process (about 50 us). Earlier mappings are kept if the process has exited.
  // `first_address_ns`: when an address of it was captured first, of CLOCK_MONOTONIC; 0: not known.
  void remember(uint32_t pid, uint64_t first_address_ns = 0);
  // Adds a mapping from another source, for a process that exits before its mappings can be read.
  void remember_mapping(uint32_t pid, Mapping mapping);
  // Events of processes, in their order: a process has started as a copy of another one, has executed a program, has
  // mapped code, has ended. They are used if /proc has no answer any more.
  void process_started(uint32_t pid, uint32_t parent, uint64_t time_ns = 0);  // in CLOCK_MONOTONIC; 0: not known
  void process_executed(uint32_t pid, uint64_t time_ns = 0);
  void process_mapped(uint32_t pid, Mapping mapping, uint64_t time_ns = 0);
  void process_ended(uint32_t pid);
  // Forgets what events reported of processes that had ended at the last call of this, and were not passed to
  // `remember`.
  void forget_ended_processes();
  // Sets a function that is called before an address is looked up, to report events that there are by then. Null: none.
  void on_lookup(std::function<void()> read_events);
  // Sets a function that is called before each part of the work that may take long: a file, a source line. Null: none.
  void on_work(std::function<void()> tick);
  const SkippedFiles& skipped_files() const;
  // Returns how many processes were looked up whose files this process may not open; counts to a thousand.
  size_t closed_processes() const;
  // Returns how many processes were looked up after they had exited and their mappings were dropped for max_processes.
  uint64_t missed_processes() const;
  // Returns how many addresses had no name, as other code was there at other times, or is there now; counts to 10,000.
  uint64_t uncertain_addresses() const;

  // Returns the ELF file at a path in the tracer's mount namespace, while a script is prepared. A path always gives the
  // same file, so that all reads of it fit together. Fails with ESTALE if that is not cached any more and the path has
  // another one now.
  Result<std::shared_ptr<const ElfFile>> elf_file(const std::string& path);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace espy::symbols
