#include "runtime/process_watch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/end_request.h"
#include "base/process.h"
#include "base/untrusted_file.h"
#include "kernel/processes.h"
#include "load/process_events.h"
#include "runtime/resolver.h"
#include "symbols/debug_file.h"

namespace espy::runtime {

void ProcessWatch::start(const program::Program& program, const spec::Config& config) {
  const bool is_wanted = std::ranges::any_of(
      program.events, [](const program::EventSchema& event) { return event.builtin == kRememberProcess; });
  // The events have ids of our pid namespace; if /proc has others, the two cannot be brought together.
  if (!is_wanted || (config.tracee.pid_namespace && !config.tracee.pid_namespace->numbers_proc)) return;
  auto events = load::ProcessEvents::open();
  if (!events) return;
  events_.emplace(std::move(*events));
  if (config.tracee.has_child) symbols_.process_started(config.tracee.child_pid, static_cast<uint32_t>(::getpid()));
  symbols_.on_lookup([this] { drain(); });
}

void ProcessWatch::drain() {
  using Kind = load::ProcessEvent::Kind;
  if (!events_) return;
  std::optional<uint64_t> clock_offset_ns;  // to measure it takes longer than to find no event
  events_->drain([&](const load::ProcessEvent& event) {
    if (!clock_offset_ns) clock_offset_ns = static_cast<uint64_t>(wall_clock_offset_ns(CLOCK_MONOTONIC));
    switch (event.kind) {
      case Kind::kStart: symbols_.process_started(event.pid, event.parent, event.time_ns); break;
      case Kind::kExecute: symbols_.process_executed(event.pid, event.time_ns); break;
      case Kind::kEnd: symbols_.process_ended(event.pid); break;
      case Kind::kMap:
        symbols_.process_mapped(event.pid,
                                {.start = event.start,
                                 .end = event.end,
                                 .file_offset = event.file_offset,
                                 .path = event.path,
                                 .device = event.device,
                                 .inode = event.inode,
                                 .seen_ns = event.time_ns + *clock_offset_ns,
                                 .executable = true},
                                event.time_ns);
        break;
    }
  });
}

void ProcessWatch::forget_ended() {
  if (events_) symbols_.forget_ended_processes();
}

namespace {

using program::UnwindFileKey;
using program::UnwindKeyQuery;

// A file that is mapped, of which no byte may be read.
class Mapped {
 public:
  explicit Mapped(int fd) {
    struct stat status = {};
    if (::fstat(fd, &status) != 0) return;
    // The block of a file in huge pages is such a page, which is mapped and unmapped only as a whole.
    constexpr uint64_t kMostBytes = uint64_t{16} << 30;
    const auto block_bytes = static_cast<uint64_t>(std::max<blksize_t>(status.st_blksize, 1));
    const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    if (block_bytes > kMostBytes) return;
    size_bytes_ = (block_bytes + page_bytes - 1) / page_bytes * page_bytes;
    address_ = ::mmap(nullptr, size_bytes_, PROT_NONE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  }
  ~Mapped() {
    if (is_valid()) ::munmap(address_, size_bytes_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  bool is_valid() const { return address_ != MAP_FAILED; }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(address_); }

 private:
  void* address_ = MAP_FAILED;
  size_t size_bytes_ = 0;
};

}  // namespace

FileKeys::FileKeys(load::Machine& machine, const program::Program& program) : machine_(machine) {
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == program::kUnwindKeyName) query_ = id;
  for (const program::ProgramId id : program.programs.ids())
    if (program.programs[id].name == program::kUnwindKeyName) program_ = id;
}

std::optional<UnwindFileKey> FileKeys::key_of(const UntrustedFile& file) {
  const Mapped mapped(file.fd.get());
  if (!mapped.is_valid() || !program_.valid()) return std::nullopt;
  UnwindKeyQuery query{.address = mapped.address()};
  const std::span<std::byte> memory = machine_.memory(query_);
  std::memcpy(memory.data(), &query, sizeof(query));
  if (!machine_.run(program_)) return std::nullopt;
  std::memcpy(&query, memory.data(), sizeof(query));
  if (query.is_known == 0) return std::nullopt;
  return query.key;
}

std::optional<UnwindFileKey> FileKeys::key_now(const UntrustedFile& file) {
  const auto opened = open_untrusted(descriptor_path(file.fd), UINT64_MAX);
  return opened ? key_of(*opened) : std::nullopt;
}

namespace {

class Followed {
 public:
  Followed(load::Machine& machine, program::MapId map, std::span<const uint32_t> pids)
      : machine_(machine), map_(map), known_(pids.begin(), pids.end()) {}

  // Adds all descendants, as far as `children_` tells.
  Status add_all() {
    std::vector<uint32_t> waiting(known_.begin(), known_.end());
    while (!waiting.empty()) {
      const uint32_t parent = waiting.back();
      waiting.pop_back();
      for (const uint32_t child : children_[parent]) {
        if (!known_.insert(child).second) continue;
        TRY_STATUS(add(child));
        waiting.push_back(child);
      }
    }
    return {};
  }

  void note(uint32_t parent, uint32_t child) { children_[parent].insert(child); }
  const std::vector<uint32_t>& added() const { return added_; }

 private:
  // The program that sees the end of a process may have been there before the process is added.
  Status add(uint32_t pid) {
    const auto key = std::as_bytes(std::span(&pid, 1));
    const auto set = [&](uint64_t is_alive) {
      return machine_.update(map_, key, std::as_bytes(std::span(&is_alive, 1)));
    };
    if (!machine_.lookup(map_, key)) TRY_STATUS(set(1));
    const auto state = kernel::parent_of(pid);
    if (!state) {
      TRY(machine_.remove(map_, key));
    } else if (state->is_zombie) {
      TRY_STATUS(set(0));
    } else {
      added_.push_back(pid);
    }
    return {};
  }

  load::Machine& machine_;
  program::MapId map_;
  std::set<uint32_t> known_;
  std::map<uint32_t, std::set<uint32_t>> children_;
  std::vector<uint32_t> added_;
};

}  // namespace

Result<std::vector<uint32_t>> follow_existing_children(load::Machine& machine, const program::Program& program,
                                                       std::span<const uint32_t> pids) {
  load::ProcessEvents events = TRY(load::ProcessEvents::open());
  Followed followed(machine, program.following.processes, pids);
  for (const uint32_t each : numbered_entries("/proc"))
    if (const auto found = kernel::parent_of(each)) followed.note(found->parent, each);
  // Once a process is in the map, the programs add what it starts.
  for (size_t known = SIZE_MAX; known != followed.added().size();) {
    known = followed.added().size();
    TRY_STATUS(followed.add_all());
    events.drain([&](const load::ProcessEvent& event) {
      if (event.kind == load::ProcessEvent::Kind::kStart) followed.note(event.parent, event.pid);
    });
    TRY_STATUS(followed.add_all());
  }
  if (events.lost() > 0)
    return fail(fmt::format("cannot list the processes that {} {} started: too many start at a time",
                            fmt::join(pids, ", "), pids.size() == 1 ? "has" : "have"),
                0, "--follow-new skips them");
  return followed.added();
}

namespace {

bool is_on_overlay(const std::string& path) {
  struct statfs64 system = {};
  return ::statfs64(path.c_str(), &system) == 0 && system.f_type == OVERLAYFS_SUPER_MAGIC;
}

// The time of the last change is not compared, because a new name or mode of the file changes it, too. Except on
// overlayfs: the first such change copies the file to the upper layer. stat(2) shows the inode of before, but processes
// that start later map the copy, whose inode has no probes (Documentation/filesystems/overlayfs.rst,
// "Non-directories").
std::string change_of(const std::string& path, const FileState& probed) {
  const auto now = state_of(path);
  if (!now || *now == probed) return "";
  if (now->identity == probed.identity) {
    if (!is_on_overlay(path)) return "";
    return fmt::format(
        "{} was changed during the run, and may be a copy in the upper layer of overlayfs now; calls in "
        "a copy are not counted",
        path);
  }
  const std::string_view became = what_became_of({probed.identity, 0}, *now);
  const bool is_other = now->identity.device != probed.identity.device || now->identity.inode != probed.identity.inode;
  return fmt::format("{} {} during the run; {}", path, became,
                     is_other ? "calls in the new file are not counted" : "probes may be at other code than named");
}

}  // namespace

void ProbedFiles::list_files() {
  if (has_list_) return;
  has_list_ = true;
  std::map<std::string, FileState> files;
  for (const program::Probe& probe : program_.probes)
    if (probe.file.is_known()) files.emplace(symbols::path_on_disk(probe.target), probe.file);
  for (auto& [path, state] : files) unchanged_.push_back({path, state});
}

void ProbedFiles::look() {
  list_files();
  std::erase_if(unchanged_, [&](const File& file) {
    std::string change = change_of(file.path, file.state);
    if (change.empty()) return false;
    changes_.push_back(std::move(change));
    return true;
  });
}

void ProbedFiles::look_sometimes() {
  constexpr uint64_t kPauseNs = 10'000'000'000;
  const uint64_t now_ns = monotonic_ns();
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kPauseNs;
  look();
}

}  // namespace espy::runtime
