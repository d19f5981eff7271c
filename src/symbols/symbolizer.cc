// The Symbolizer: from a pid and an address to the mapping, the file and the function.
//
// A user address is only meaningful together with the mappings of the process at that time, and by the time it is
// symbolized the process may have loaded a library, called exec, or exited. So mappings are snapshots, taken by
// `remember` or on the first lookup, and valid as long as one of them contains the address. If none does, a new
// snapshot is taken; a process that has exited keeps its last one, and the mappings added by `remember_mapping`. An
// address that is in no mapping (garbage, a broken frame pointer) must not cost a read of /proc each time, so a refresh
// without success is followed by a pause. After exec an old mapping can contain addresses of the new program, so the
// executable is also compared, at most once per pause rather than for each frame of a stack. The old mappings are kept
// for the stacks taken before the exec. With it the time of the start is compared: a process that has ended may have
// left its id to another one.
//
// What no snapshot has, events of the kernel may have reported (watched.h): the mappings of a process that has ended
// before the first snapshot, of each program that it executed, what was mapped where other code was, and which process
// it is a copy of. Without a process to look at, its root is taken to be that of the process that has started it.
//
// So several files may have had their code at an address: of libraries that were loaded in turn, of programs that the
// process has executed, of the processes that had its id. Stacks of all of them can be still to be shown. A frame that
// was unwound has a tag of its file (program::CodeTag), which tells the one that it is in. Other addresses have none;
// they are named only if all that was there agrees. What changes without an event, as by mremap(2), they do not tell.
//
// The file of a mapping is opened by path, and read, on the first lookup in it. Two kinds are opened with the snapshot,
// because they can only be reached through the process: deleted files (/proc/PID/map_files) and those in another mount
// namespace (/proc/PID/root). These are read on the first lookup as well: a process can map any number of files of any
// size, at no cost. Keeping the namespace open instead would keep the file systems of every container busy.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/limits.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "program/unwind_layout.h"
#include "symbols/debug_file.h"
#include "symbols/kernel_symbols.h"
#include "symbols/symbols.h"
#include "symbols/traced_process.h"
#include "symbols/watched.h"

namespace espy::symbols {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRefreshPause = std::chrono::milliseconds(100);
constexpr int kPauseFactor = 10;  // of a snapshot, or a search for a perf map, that takes long
constexpr auto kExecutableCheckPause = std::chrono::milliseconds(10);
constexpr size_t kMaxEarlierSpaces = 8;
constexpr int kMaxAncestors = 64;

constexpr size_t kMaxSources = 1 << 16;
constexpr size_t kMaxMappings = 2 << 20;  // of all processes
constexpr uint64_t kMuchPathBytes = 16 << 20;

// After what began at `started` and had no success.
Clock::time_point end_of_pause(Clock::time_point started) {
  const auto ended = Clock::now();
  return ended + std::max<Clock::duration>(kRefreshPause, (ended - started) * kPauseFactor);
}

}  // namespace

struct Symbolizer::State {
  explicit State(Options chosen)
      : options(std::move(chosen)), kernel_symbols(options.kernel_symbols), files(options.debug_directories) {}

  Options options;
  KernelSymbols kernel_symbols;
  CodeImages images;
  std::unordered_map<uint32_t, Process> processes;
  std::unordered_map<uint32_t, std::vector<Process>> former_processes;  // by the id that others have now, oldest first
  Process former_owner;                                                 // see `former_code`
  std::map<std::pair<dev_t, ino_t>, std::shared_ptr<AddressSpace>> spaces_by_executable;  // kPerProgram only
  ElfCache files;
  std::shared_ptr<CachedFile> vdso;
  WatchedProcesses watched{images, options.max_processes, [this](uint32_t pid) { note_dropped(pid); }};
  std::function<void()> read_events;
  std::function<void()> tick;
  std::optional<UnnamedJit> unnamed_jit;
  std::map<std::pair<std::shared_ptr<const ElfFile>, uint64_t>, std::vector<SourceFrame>> sources;  // linked addresses

  SkippedFiles skipped_files;
  uint64_t waited_at_end_ns = 0;    // for mappings, since the end of the run was requested
  size_t mapping_count = 0;         // of the address spaces read since the last count
  uint64_t counted_path_bytes = 0;  // by the last `shrink`
  bool is_to_shrink = false;

  uint64_t lookups = 0;
  uint64_t missed_processes = 0;
  std::set<std::pair<uint32_t, uint64_t>> uncertain_addresses;  // of a process
  std::vector<bool> is_dropped;                                 // by pid
  std::set<uint32_t> closed_processes;

  Process* snapshot(uint32_t pid, bool may_share);
  std::shared_ptr<AddressSpace> read_space(uint32_t pid, uint32_t task);
  void hold_files(Process& process);
  Process& add_process(uint32_t pid);
  void note_if_closed(uint32_t pid, uint32_t task);
  void note_dropped(uint32_t pid);
  void drop_oldest_processes();
  size_t max_files() const;
  uint64_t memory_bytes() const;
  bool is_too_large() const;
  void drop_large();
  void shrink();
  void note_missing_names();
  bool has_code(Process& process, uint64_t tagged);
  Process* find_process(uint32_t pid, uint64_t address);
  static bool runs_another_program(Process& process);
  void retire(uint32_t pid);
  bool has_former(uint32_t pid) const { return former_processes.contains(pid) || watched.has_former(pid); }
  Process* process_for(uint32_t pid, uint64_t address);
  Result<std::shared_ptr<const ElfFile>> file_of_script(const std::string& path);
  // Calls `open` with the paths that lead to the file of a mapping, and what tells it from others, until one of them
  // succeeds. Returns what that did; a null pointer if none does.
  template <class Open>
  auto try_paths(const Process& process, const CodeMapping& code, Open open);
  std::shared_ptr<CachedFile> open_mapped(const Process& process, const CodeMapping& code);
  const ElfFile* file_of(const Process& process, CodeMapping& code);
  void note_lost(const Process& process, const CodeMapping& code, bool was_dropped);
  template <class Visit>
  void visit_own(uint32_t pid, Process* process, uint64_t address, Visit visit);
  template <class Visit>
  void visit_former(const Process& process, uint64_t address, Visit visit);
  CodeChoice choose(Process& process, uint64_t tagged);
  CodeChoice find_code(Process& process, uint64_t tagged);
  Process* ended_process(uint32_t pid);
  void note_unnamed(Process& process, uint64_t address);
  struct FileAddress {
    std::shared_ptr<const ElfFile> elf;
    CodeMapping* code = nullptr;
    uint64_t offset = 0;  // in the ELF file
    uint64_t linked = 0;
  };
  std::optional<FileAddress> find_in_file(Process& process, uint64_t address);
  std::optional<Symbol> find_in_elf(const FileAddress& place, uint64_t tagged) const;
  bool may_use_perf_map(Process& process, uint64_t tagged);
  static bool is_map_search_due(Process& process);
  std::optional<Symbol> find_in_perf_map(Process& process, uint64_t address);
  std::string shown_name(const std::string& name) const { return options.demangle_cpp ? demangle(name) : name; }
};

// The kernel lets a reader of /proc/PID/maps wait as long as the process changes its mappings, which it can do all the
// time.
std::shared_ptr<AddressSpace> Symbolizer::State::read_space(uint32_t pid, uint32_t task) {
  if (is_end_requested() && waited_at_end_ns >= options.max_wait_at_end_ns) {
    skipped_files.add(
        {kernel::proc_path(pid, "maps") + " was not read, as those before it took too long", kRefusedFile});
    return nullptr;
  }
  const uint64_t started = monotonic_ns();
  const auto cpu_started = thread_cpu_time();
  auto space = read_address_space(task, images, skipped_files);
  const uint64_t took = monotonic_ns() - started;
  const auto cpu_took = static_cast<uint64_t>((thread_cpu_time() - cpu_started).count());
  waited_at_end_ns += std::min(took - std::min(took, cpu_took), ns_since_end_request());
  return space;
}

// Reads the mappings of a process, replacing older ones. null if it has exited and has no snapshot.
Process* Symbolizer::State::snapshot(uint32_t pid, bool may_share) {
  const uint64_t seen_ns = monotonic_ns();
  const uint64_t start_time = read_start_time(pid).value_or(0);
  auto known = processes.find(pid);
  if (known != processes.end() && is_another_process(known->second)) {
    retire(pid);
    known = processes.end();
  }
  const bool shares_spaces = options.cache == CachePolicy::kPerProgram;
  const uint32_t task = task_with_memory(pid);
  const auto executable = read_executable(task);
  std::shared_ptr<AddressSpace> space;
  if (executable && shares_spaces && may_share) {
    if (const auto shared = spaces_by_executable.find(*executable); shared != spaces_by_executable.end())
      space = shared->second;
  }
  const bool is_new = space == nullptr;
  if (is_new) space = read_space(pid, task);
  if (is_new && space != nullptr && (mapping_count += space->code.size()) > kMaxMappings) is_to_shrink = true;
  if (images.path_bytes() > counted_path_bytes + kMuchPathBytes) is_to_shrink = true;
  if (!executable) note_if_closed(pid, task);
  if (space == nullptr) return known == processes.end() ? nullptr : &known->second;

  Process& process = add_process(pid);
  process.pid = pid;
  process.task = task;
  process.start_time = start_time;
  process.seen_ns = seen_ns;
  process.namespace_pid = read_namespace_pid(pid);
  process.root = read_root(task);
  process.user = read_owner(task);
  if (is_new && process.space != nullptr) space->adopt_files(*process.space);
  if (is_new && process.space != nullptr && executable == process.executable) keep_unmapped(process, *space);
  if (process.space != nullptr && executable != process.executable) {
    if (process.earlier_spaces.size() >= kMaxEarlierSpaces)
      process.earlier_spaces.erase(process.earlier_spaces.begin());
    process.earlier_spaces.push_back(process.space);
    process.perf_map = nullptr;
    process.held_perf_map = nullptr;
    process.has_searched_perf_map = false;
  }
  process.is_root_known = true;
  process.space = space;
  process.executable = executable;
  process.executable_read_at = Clock::now();
  if (executable && shares_spaces) spaces_by_executable[*executable] = space;
  hold_files(process);
  if (!process.root.empty() && keep_perf_map(process, skipped_files)) {
    is_to_shrink = true;
    drop_large();  // a single lookup can take many snapshots
  }
  return &process;
}

template <class Open>
auto Symbolizer::State::try_paths(const Process& process, const CodeMapping& code, Open open) {
  const CodeImage& image = *code.image;
  const std::string path = process.root + image.path();
  const ElfCache::MappedFile mapped{image.inode, code.seen_us};
  std::vector<std::pair<std::string, ElfCache::MappedFile>> candidates;
  if (!image.deleted) candidates.emplace_back(path, mapped);
  candidates.emplace_back(map_files_path(process.task, code.start, code.end()), ElfCache::MappedFile());
  if (!image.deleted) candidates.emplace_back(image.path(), mapped);
  for (const auto& [candidate, wanted] : candidates) {
    auto file = open(candidate, wanted);
    if (file) return std::move(*file);
    skipped_files.add(file.error());
  }
  return typename decltype(open(path, mapped))::value_type();
}

// Opens the files that only the process leads to, so that they can be read after its end; not thousands, which would
// take the descriptors of all others.
void Symbolizer::State::hold_files(Process& process) {
  const size_t max_held = max_files() / 2;
  const auto identity = [](const CodeMapping& code) { return std::pair{code.image->device, code.image->inode}; };
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const UntrustedFile>> held;
  for (const CodeMapping& code : process.space->code)  // since an earlier snapshot
    if (code.held != nullptr) held.try_emplace(identity(code), code.held);
  for (CodeMapping& code : process.space->code) {
    const CodeImage& image = *code.image;
    if (!image.is_file() || (!image.deleted && process.root.empty())) continue;
    const auto file = identity(code);
    code.is_not_held = held.size() >= max_held && !held.contains(file);
    if (code.is_not_held) continue;
    const auto [known, is_new] = held.try_emplace(file, code.held);
    if (is_new && known->second == nullptr)
      known->second = try_paths(process, code,
                                [&](const std::string& path, const auto& mapped) { return files.hold(path, mapped); });
    code.held = known->second;
  }
  if (files.held_count() > max_files()) is_to_shrink = true;
}

void Symbolizer::State::note_if_closed(uint32_t pid, uint32_t task) {
  constexpr size_t kMost = 1000;
  if (closed_processes.size() >= kMost) return;
  if (!status_of(kernel::proc_path(task, "exe")) && errno == EACCES) closed_processes.insert(pid);
}

// Returns the snapshot of a process, a new one if there is none.
Process& Symbolizer::State::add_process(uint32_t pid) {
  if (processes.size() >= options.max_processes && !processes.contains(pid)) drop_oldest_processes();
  Process& process = processes[pid];
  process.used_at = ++lookups;
  if (pid < is_dropped.size()) is_dropped[pid] = false;
  return process;
}

void Symbolizer::State::note_dropped(uint32_t pid) {
  if (pid >= is_dropped.size()) is_dropped.resize(size_t{pid} + 1);
  is_dropped[pid] = true;
}

// A quarter at a time, with the files that no other process uses.
void Symbolizer::State::drop_oldest_processes() {
  std::vector<uint64_t> uses;
  for (const auto& [pid, process] : processes) uses.push_back(process.used_at);
  const auto quarter = uses.begin() + static_cast<ptrdiff_t>(uses.size() / 4);
  std::ranges::nth_element(uses, quarter);
  std::erase_if(processes, [&](const auto& entry) {
    if (entry.second.used_at > *quarter) return false;
    note_dropped(entry.first);
    return true;
  });
  for (auto& [pid, former] : former_processes)
    std::erase_if(former, [&](const Process& process) { return process.used_at <= *quarter; });
  std::erase_if(former_processes, [](const auto& entry) { return entry.second.empty(); });
  note_missing_names();
  sources.clear();
  std::erase_if(spaces_by_executable, [](const auto& entry) { return entry.second.use_count() == 1; });
  files.drop_unused();
  images.purge();
  mapping_count = 0;
  for (const auto& [pid, process] : processes) mapping_count += process.space->code.size();
  for (const auto& [pid, former] : former_processes)
    for (const Process& process : former) mapping_count += process.space->code.size();
}

void Symbolizer::State::note_missing_names() {
  files.for_each([&](const ElfFile& file) {
    if (const std::optional<Error>& missing = file.missing_names()) skipped_files.add(*missing);
  });
}

// Half of the descriptors that the process may have, for those that are read and those that are held.
size_t Symbolizer::State::max_files() const {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return options.max_files;
  return std::min<size_t>(options.max_files, std::max<rlim_t>(limit.rlim_cur / 4, 1));
}

uint64_t Symbolizer::State::memory_bytes() const {
  uint64_t out = files.memory_bytes() + images.path_bytes();
  for (const auto& [pid, process] : processes)
    if (process.perf_map != nullptr) out += process.perf_map->map.memory_bytes();
  return out;
}

bool Symbolizer::State::is_too_large() const {
  const auto holds_map = [](const auto& entry) { return entry.second.held_perf_map != nullptr; };
  const size_t held = files.held_count() + static_cast<size_t>(std::ranges::count_if(processes, holds_map));
  return files.file_count() > max_files() || held > max_files() || mapping_count > kMaxMappings ||
         memory_bytes() > options.max_memory_bytes;
}

// Drops the large files and perf maps that were not used for longest, until what is kept has a size within bounds. They
// are read again when they are needed; a thousand small ones are kept for it.
void Symbolizer::State::drop_large() {
  constexpr uint64_t kPart = 64;
  const uint64_t large_bytes = options.max_memory_bytes / kPart;
  if (memory_bytes() <= options.max_memory_bytes) return;
  note_missing_names();
  sources.clear();
  while (memory_bytes() > options.max_memory_bytes) {
    CachedFile* file = files.oldest(large_bytes);
    Process* mapped = nullptr;
    for (auto& [pid, process] : processes) {
      if (process.perf_map == nullptr || process.perf_map->map.memory_bytes() < large_bytes) continue;
      if (mapped == nullptr || process.used_at < mapped->used_at) mapped = &process;
    }
    if (file == nullptr && mapped == nullptr) return;
    if (mapped == nullptr || (file != nullptr && file->used_at < mapped->used_at)) {
      file->elf = nullptr;
    } else {
      mapped->perf_map = nullptr;
      mapped->has_lost_perf_map = true;
    }
  }
}

// Drops what is large, then the processes that were not used for longest, with their files, until what is kept has a
// size within bounds. Requires that no process is referred to.
void Symbolizer::State::shrink() {
  if (sources.size() > kMaxSources) sources.clear();
  const bool has_grown = files.take_has_grown();
  if (!std::exchange(is_to_shrink, false) && !has_grown) return;
  if (is_too_large()) {
    note_missing_names();
    files.drop_unused();
    images.purge();
    drop_large();
  }
  while (is_too_large() && !processes.empty()) drop_oldest_processes();
  if (is_too_large()) {
    watched.clear();
    former_processes.clear();
    images.purge();
  }
  counted_path_bytes = images.path_bytes();
}

bool Symbolizer::State::runs_another_program(Process& process) {
  if (process.has_successor) return true;
  if (Clock::now() < process.executable_read_at + kExecutableCheckPause) return false;
  process.executable_read_at = Clock::now();
  if (is_another_process(process)) return true;
  const auto executable = read_executable(process.task);
  return executable && executable != process.executable;
}

// The process with this id is not what it was. What is known of its mappings is kept for the stacks that it left; its
// perf map would name any address.
void Symbolizer::State::retire(uint32_t pid) {
  constexpr size_t kMost = 8;
  auto known = processes.extract(pid);
  if (known.empty()) return;
  Process& process = known.mapped();
  process.task = 0;
  process.is_root_known = process.root.empty();  // /proc/PID/root is another one's
  process.perf_map = nullptr;
  process.held_perf_map = nullptr;
  std::vector<Process>& former = former_processes[pid];
  if (former.size() >= kMost) former.erase(former.begin());
  former.push_back(std::move(process));
}

// Returns a process that has ended before a snapshot was taken, but of which events were seen; otherwise null.
Process* Symbolizer::State::ended_process(uint32_t pid) {
  if (!watched.knows(pid) && read_events) read_events();
  if (!watched.knows(pid)) return nullptr;
  Process process{.pid = pid,
                  .seen_ns = monotonic_ns(),
                  .namespace_pid = pid,
                  .is_root_known = false,
                  .space = std::make_shared<AddressSpace>()};
  // It probably had the root of the process that has started it.
  uint32_t ancestor = watched.parent_of(pid);
  for (int i = 0; i < kMaxAncestors && ancestor != 0 && !process.is_root_known; ++i) {
    const uint32_t task = task_with_memory(ancestor);
    process.is_root_known = read_executable(task).has_value();
    if (process.is_root_known) process.root = read_root(task);
    ancestor = watched.parent_of(ancestor);
  }
  process.used_at = add_process(pid).used_at;
  return &(processes[pid] = std::move(process));
}

// Returns the snapshot of a process, refreshed if it has no mapping for `address`; null if nothing is known of it.
Process* Symbolizer::State::process_for(uint32_t pid, uint64_t address) {
  shrink();
  Process* process = find_process(pid, address);
  if (process != nullptr) {
    process->used_at = ++lookups;
  } else if (pid < is_dropped.size() && is_dropped[pid]) {
    ++missed_processes;
    is_dropped[pid] = false;  // counted once
  }
  return process;
}

// Whether the snapshot has an address, and what was there when the address was captured is known.
bool Symbolizer::State::has_code(Process& process, uint64_t tagged) {
  const CodeMapping* code = process.space->find(program::code_address(tagged));
  const uint8_t tag = program::code_tag(tagged);
  return code != nullptr &&
         (tag == program::kUnknownCode || code->tag() == tag || choose(process, tagged).is_certain());
}

Process* Symbolizer::State::find_process(uint32_t pid, uint64_t address) {
  const auto known = processes.find(pid);
  const bool is_cached = options.cache != CachePolicy::kNone;
  const bool is_valid = known != processes.end() && is_cached && !runs_another_program(known->second);
  Process* process = is_valid ? &known->second : snapshot(pid, is_cached);
  if (process == nullptr) process = ended_process(pid);
  if (process == nullptr || !is_cached) return process;
  if (has_code(*process, address) || Clock::now() < process->next_refresh) return process;
  const auto started = Clock::now();
  process = snapshot(pid, false);
  if (process == nullptr) process = ended_process(pid);
  if (process == nullptr) return nullptr;
  if (!has_code(*process, address)) process->next_refresh = end_of_pause(started);
  return process;
}

Result<std::shared_ptr<const ElfFile>> Symbolizer::State::file_of_script(const std::string& path) {
  if (files.file_count() >= max_files()) files.drop_unused();
  return files.get_for_script(path);
}

std::shared_ptr<CachedFile> Symbolizer::State::open_mapped(const Process& process, const CodeMapping& code) {
  const CodeImage& image = *code.image;
  if (tick) tick();
  // A 32-bit process has another vdso.
  if (image.path() == "[vdso]" && code.start > UINT32_MAX) {
    if (vdso == nullptr) vdso = read_vdso();
    return vdso;
  }
  if (!image.is_file()) return nullptr;
  if (code.held == nullptr) {
    auto file = try_paths(process, code, [&](const std::string& candidate, const auto& mapped) {
      return files.open_with_code(candidate, image.file_offset, mapped);
    });
    // It may have been replaced since the script was prepared.
    return file ? file : files.find_of_script(process.root + image.path(), {image.inode, code.seen_us});
  }
  const auto file = files.open_with_code(*code.held, image.file_offset);
  if (!file) skipped_files.add(file.error());
  return file.value_or(nullptr);
}

// Opens it on the first lookup, and again if it was dropped.
const ElfFile* Symbolizer::State::file_of(const Process& process, CodeMapping& code) {
  const bool was_dropped = code.file != nullptr && code.file->elf == nullptr;
  if (!code.has_tried_open || was_dropped) {
    code.file = open_mapped(process, code);
    if (code.file == nullptr) note_lost(process, code, was_dropped);
  }
  code.has_tried_open = true;
  if (code.file == nullptr) return nullptr;
  code.file->used_at = lookups;
  return code.file->elf.get();
}

// A file that cannot be read any more, and could have been.
void Symbolizer::State::note_lost(const Process& process, const CodeMapping& code, bool was_dropped) {
  const std::string& path = code.image->path();
  if (was_dropped)
    skipped_files.add({fmt::format("{} was dropped, as files take too much memory", path), kRefusedFile});
  if (!was_dropped && code.is_not_held)
    skipped_files.add({fmt::format("{} was not kept open, as process {} maps more than {} files that are deleted or in "
                                   "another mount namespace",
                                   path, process.pid, max_files() / 2),
                       kRefusedFile});
}

// Visits what the process, of which `process` may be null, has or had mapped at an address, newest first.
template <class Visit>
void Symbolizer::State::visit_own(uint32_t pid, Process* process, uint64_t address, Visit visit) {
  if (process != nullptr) {
    if (CodeMapping* code = process->space->find(address)) visit(*code);
    for (auto code = process->unmapped.rbegin(); code != process->unmapped.rend(); ++code)
      if (code->has(address)) visit(*code);
    const auto& earlier = process->earlier_spaces;
    for (auto space = earlier.rbegin(); space != earlier.rend(); ++space)
      if (CodeMapping* code = (*space)->find(address)) visit(*code);
  }
  if (read_events) watched.visit(pid, address, visit);
}

// Visits what is known to have been at an address in processes that had the id before, newest first.
template <class Visit>
void Symbolizer::State::visit_former(const Process& process, uint64_t address, Visit visit) {
  if (!has_former(process.pid)) return;
  if (const auto former = former_processes.find(process.pid); former != former_processes.end())
    for (auto each = former->second.rbegin(); each != former->second.rend(); ++each)
      visit_own(0, &*each, address, [&](CodeMapping& code) { visit(*each, code); });
  former_owner = {.pid = process.pid, .is_root_known = process.root.empty()};
  former_owner.root = process.root;  // probably
  watched.visit_former(process.pid, address, [&](CodeMapping& code) { visit(former_owner, code); });
}

CodeChoice Symbolizer::State::choose(Process& process, uint64_t tagged) {
  const uint64_t address = program::code_address(tagged);
  CodeChoice out(tagged);
  visit_own(process.pid, &process, address, [&](CodeMapping& mapping) { out.add(process, mapping); });
  visit_former(process, address, [&](Process& owner, CodeMapping& mapping) { out.add(owner, mapping); });
  uint32_t ancestor = read_events ? watched.parent_of(process.pid) : 0;
  for (int i = 0; i < kMaxAncestors && ancestor != 0 && out.is_empty(); ++i) {
    const auto known = processes.find(ancestor);
    Process* parent = known == processes.end() ? snapshot(ancestor, true) : &known->second;
    Process& owner = parent == nullptr ? process : *parent;
    visit_own(ancestor, parent, address, [&](CodeMapping& mapping) { out.add(owner, mapping); });
    ancestor = watched.parent_of(ancestor);
  }
  return out;
}

CodeChoice Symbolizer::State::find_code(Process& process, uint64_t tagged) {
  constexpr size_t kMostUncertain = 10'000;
  if (read_events) read_events();
  const CodeChoice out = choose(process, tagged);
  if (out.is_uncertain() && uncertain_addresses.size() < kMostUncertain)
    uncertain_addresses.emplace(process.pid, program::code_address(tagged));
  return out;
}

std::optional<Symbolizer::State::FileAddress> Symbolizer::State::find_in_file(Process& process, uint64_t tagged) {
  const Code found = find_code(process, tagged).code();
  CodeMapping* code = found.mapping;
  if (code == nullptr || file_of(*found.process, *code) == nullptr) return std::nullopt;
  const std::shared_ptr<const ElfFile>& elf = code->file->elf;
  const uint64_t address = program::code_address(tagged);
  const uint64_t offset = address - code->start + code->image->file_offset - elf->offset_in_archive();
  const std::optional<uint64_t> linked = elf->address_of_offset(offset);
  if (!linked) return std::nullopt;
  return FileAddress{elf, code, offset, *linked};
}

std::optional<Symbol> Symbolizer::State::find_in_elf(const FileAddress& place, uint64_t tagged) const {
  const std::optional<ElfSymbol> function = place.elf->function_at(place.linked);
  if (!function) return std::nullopt;
  const uint64_t offset = place.linked - function->address;
  return Symbol{shown_name(function->name), offset, place.code->image->path(), program::code_address(tagged) - offset};
}

// A map can name any address, so only what was not in a file, and with former processes only what can be code of this
// one.
bool Symbolizer::State::may_use_perf_map(Process& process, uint64_t tagged) {
  if (process.has_successor || find_code(process, tagged).is_uncertain()) return false;
  if (!has_former(process.pid)) return true;
  const uint64_t address = program::code_address(tagged);
  bool has_former_code = false;
  visit_former(process, address, [&](Process&, CodeMapping&) { has_former_code = true; });
  return process.space->find(address) != nullptr && !has_former_code;
}

// The pause does not hide what a JIT has written just before the end of the run.
bool Symbolizer::State::is_map_search_due(Process& process) {
  if (Clock::now() >= process.next_map_search) return true;
  return is_end_requested() && !std::exchange(process.has_searched_at_end, true);
}

std::optional<Symbol> Symbolizer::State::find_in_perf_map(Process& process, uint64_t address) {
  const auto find = [&] { return process.perf_map == nullptr ? std::nullopt : process.perf_map->map.at(address); };
  std::optional<PerfMap::Entry> entry = find();
  // A JIT writes the line after the code, so the map may have changed since it was read. To look costs 40 us, and a
  // stack can consist of addresses that are in no map.
  if (!entry && is_map_search_due(process)) {
    const auto started = Clock::now();
    if (refresh_perf_map(process, skipped_files)) {
      entry = find();
      is_to_shrink = true;
    }
    if (!entry) process.next_map_search = end_of_pause(started);
  }
  if (!entry && process.has_lost_perf_map)
    skipped_files.add(
        {perf_map_path(process.namespace_pid) + " was dropped, as files take too much memory", kRefusedFile});
  if (!entry) return std::nullopt;
  return Symbol{std::string(entry->name), address - entry->start, process.perf_map->path, entry->start};
}

// JIT compilers put code into anonymous memory, or into memory files that they map twice.
void Symbolizer::State::note_unnamed(Process& process, uint64_t address) {
  if (unnamed_jit) return;
  const Code code = find_code(process, address).code();
  if (!code) return;
  const CodeImage& image = *code.mapping->image;
  const bool is_made = image.path().empty() || image.path().starts_with("[anon") ||
                       (image.deleted && file_of(*code.process, *code.mapping) == nullptr);
  if (!is_made) return;
  std::error_code ignored;
  const std::string executable =
      std::filesystem::read_symlink(kernel::proc_path(process.task, "exe"), ignored).filename().string();
  unnamed_jit = {process.pid, executable, perf_map_path(process.namespace_pid)};
}

Symbolizer::Symbolizer() : Symbolizer(Options{}) {}
Symbolizer::Symbolizer(const Options& options) : state_(std::make_unique<State>(options)) {}
void Symbolizer::configure(bool demangle_cpp, CachePolicy cache) {
  state_->options.demangle_cpp = demangle_cpp;
  state_->options.cache = cache;
}
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;
Symbolizer::~Symbolizer() = default;

bool Symbolizer::read_kernel_ahead() { return state_->kernel_symbols.read_ahead(); }

std::optional<Symbol> Symbolizer::kernel(uint64_t address) {
  const std::optional<KernelSymbol> found = state_->kernel_symbols.at_or_before(address);
  if (!found) return std::nullopt;
  return Symbol{state_->shown_name(std::string(found->name)), address - found->address, std::string(found->module),
                found->address};
}

std::optional<Symbol> Symbolizer::user(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  if (process == nullptr) return std::nullopt;
  const auto place = state_->find_in_file(*process, address);
  if (auto found = place ? state_->find_in_elf(*place, address) : std::nullopt) return found;
  // For code in a file, search for a map only once: it costs a system call.
  if (place && process->perf_map == nullptr && std::exchange(process->has_searched_perf_map, true)) return std::nullopt;
  if (!state_->may_use_perf_map(*process, address)) return std::nullopt;
  auto found = state_->find_in_perf_map(*process, program::code_address(address));
  if (!found) state_->note_unnamed(*process, address);
  return found;
}

const std::optional<Symbolizer::UnnamedJit>& Symbolizer::unnamed_jit() const { return state_->unnamed_jit; }

std::vector<SourceFrame> Symbolizer::source(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const auto place = process == nullptr ? std::nullopt : state_->find_in_file(*process, address);
  if (!place) return {};
  const auto [known, is_new] = state_->sources.try_emplace({place->elf, place->linked});
  if (!is_new) return known->second;
  if (state_->tick) state_->tick();
  const auto debug = place->elf->debug_info();
  if (debug) {
    known->second = (*debug)->frames_at(place->linked);
    if (const Status status = (*debug)->status(); !status) state_->skipped_files.add(status.error());
  } else {
    if (debug.error().code == kRefusedFile) state_->skipped_files.add(debug.error());
    if (auto frame = place->elf->go_frame_at(place->linked)) known->second.push_back(std::move(*frame));
  }
  for (SourceFrame& frame : known->second) frame.function = state_->shown_name(frame.function);
  return known->second;
}

std::optional<Symbolizer::BuildIdOffset> Symbolizer::build_id_offset(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const auto place = process == nullptr ? std::nullopt : state_->find_in_file(*process, address);
  if (!place || place->elf->build_id().empty()) return std::nullopt;
  return BuildIdOffset{place->elf->build_id(), place->offset};
}

std::optional<Symbolizer::Module> Symbolizer::user_module(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const CodeMapping* code = process == nullptr ? nullptr : state_->find_code(*process, address).code().mapping;
  if (code == nullptr || code->image->path().empty()) return std::nullopt;
  const std::string& path = code->image->path();
  if (const auto place = state_->find_in_file(*process, address)) return Module{path, place->linked};
  if (path.starts_with('[')) return Module{path, program::code_address(address) - code->start};
  return Module{path};
}

std::optional<Symbolizer::CodeSegment> Symbolizer::code_segment(uint32_t pid, uint64_t address) {
  Process* process = state_->process_for(pid, address);
  const auto place = process == nullptr ? std::nullopt : state_->find_in_file(*process, address);
  const auto range = place ? place->elf->segment_at_offset(place->offset) : std::nullopt;
  if (!range) return std::nullopt;
  return CodeSegment{place->elf->build_id(), range->address, range->size_bytes, range->file_offset};
}

std::optional<uint64_t> Symbolizer::load_bias(uint32_t pid, const std::string& path) {
  const auto elf = state_->file_of_script(path);
  Process* process = state_->snapshot(pid, false);
  if (!elf || process == nullptr) return std::nullopt;
  // Inode numbers are unique only per device, and stat and maps may disagree on the device, so compare the name too.
  std::error_code ignored;
  const std::string real = std::filesystem::canonical(path, ignored).filename().string();
  for (const CodeMapping& code : process->space->code) {
    if (code.image->inode != (*elf)->file_state().identity.inode || !code.image->path().ends_with("/" + real)) continue;
    if (const auto linked = (*elf)->address_of_offset(code.image->file_offset)) return code.start - *linked;
  }
  return std::nullopt;
}

void Symbolizer::remember(uint32_t pid, uint64_t first_address_ns) {
  State& state = *state_;
  state.shrink();
  const bool is_known = state.snapshot(pid, true) != nullptr;
  if (!state.read_events) return;
  state.read_events();
  state.watched.keep(pid, first_address_ns);
  // A copy of a process that may end, too.
  const uint32_t parent = state.watched.parent_of(pid);
  if (!is_known && parent != 0 && !state.processes.contains(parent)) state.snapshot(parent, true);
}

void Symbolizer::process_started(uint32_t pid, uint32_t parent, uint64_t time_ns) {
  state_->watched.start(pid, parent, time_ns);
  const auto known = state_->processes.find(pid);
  if (known != state_->processes.end() && known->second.seen_ns < time_ns) known->second.has_successor = true;
}
void Symbolizer::process_executed(uint32_t pid, uint64_t time_ns) { state_->watched.execute(pid, time_ns); }
void Symbolizer::process_ended(uint32_t pid) { state_->watched.end(pid); }
void Symbolizer::forget_ended_processes() { state_->watched.forget_ended(); }
void Symbolizer::on_lookup(std::function<void()> read_events) { state_->read_events = std::move(read_events); }

void Symbolizer::on_work(std::function<void()> tick) { state_->tick = std::move(tick); }

void Symbolizer::process_mapped(uint32_t pid, Mapping mapping, uint64_t time_ns) {
  take_event_path(mapping);
  state_->watched.map(pid, mapping, time_ns);
}

namespace {

// Returns the path that /proc/PID/maps has, unless symbolic links led to the file. The file is not looked at, because
// it may be on a file system of the process, which can make espy wait.
std::string path_as_mapped(const std::string& path, uint32_t pid) {
  const std::string root = kernel::proc_path(pid, "root");
  if (path.starts_with(root + "/")) return path.substr(root.size());
  return path.starts_with('/') ? path : whole_path(path);
}

}  // namespace

void Symbolizer::remember_mapping(uint32_t pid, Mapping mapping) {
  if (const auto known = state_->processes.find(pid);
      known != state_->processes.end() && is_another_process(known->second))
    state_->retire(pid);
  Process& process = state_->add_process(pid);
  if (process.space == nullptr) {
    process.pid = process.task = process.namespace_pid = pid;
    process.start_time = read_start_time(pid).value_or(0);
    process.seen_ns = monotonic_ns();
    process.space = std::make_shared<AddressSpace>();
  }
  mapping.path = path_as_mapped(mapping.path, pid);
  const uint64_t now_us = clock_ns(CLOCK_REALTIME) / 1000;
  const CodeMapping code = {.start = mapping.start, .image = state_->images.share(mapping), .seen_us = now_us};
  if (const CodeMapping* known = process.space->find(mapping.start); known != nullptr && is_same_code(*known, code))
    return;
  replace_mapping(process, code);
}

const SkippedFiles& Symbolizer::skipped_files() const {
  state_->note_missing_names();
  return state_->skipped_files;
}

size_t Symbolizer::closed_processes() const { return state_->closed_processes.size(); }

bool Symbolizer::has_hidden_kernel() const { return state_->kernel_symbols.are_hidden(); }
uint64_t Symbolizer::missed_processes() const { return state_->missed_processes; }
uint64_t Symbolizer::uncertain_addresses() const { return state_->uncertain_addresses.size(); }

Result<std::shared_ptr<const ElfFile>> Symbolizer::elf_file(const std::string& path) {
  return state_->file_of_script(path);
}

}  // namespace espy::symbols
