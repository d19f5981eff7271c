// Processes and files during a run: what processes map, who is followed, and which probed files change.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/untrusted_file.h"
#include "load/machine.h"
#include "load/process_events.h"
#include "program/program.h"
#include "program/unwind_layout.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// ---- ProcessWatch: reports to the symbolizer what processes execute and map, so that it can name code of processes
// that have ended. Runs only for programs that take user stacks or symbols.

// The builtin whose records say that an address of a process is to be symbolized.
constexpr std::string_view kRememberProcess = "__remember_process";

class ProcessWatch {
 public:
  explicit ProcessWatch(symbols::Symbolizer& symbols) : symbols_(symbols) {}
  ProcessWatch(const ProcessWatch&) = delete;  // the symbolizer calls it
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() { symbols_.on_lookup(nullptr); }

  // Without effect if the program shows no user addresses or the kernel does not allow it.
  void start(const program::Program& program, const spec::Config& config);
  void drain();
  // Descriptors that are readable when `drain` has much to do.
  std::vector<int> descriptors() const { return events_ ? events_->descriptors() : std::vector<int>(); }
  // Call it when all records of the programs have been handled.
  void forget_ended();
  // Returns how many events the kernel had no room for.
  uint64_t lost_events() const { return events_ ? events_->lost() : 0; }

 private:
  symbols::Symbolizer& symbols_;
  std::optional<load::ProcessEvents> events_;
};

// ---- FileKeys: the key by which programs find the unwind table of a file (program/unwind_layout.h).

class FileKeys {
 public:
  // The arguments must outlive the object.
  FileKeys(load::Machine& machine, const program::Program& program);

  // Maps the file, without touching the memory, and has a program read the key of the mapping: some 5 us. nullopt if
  // the file cannot be mapped.
  std::optional<program::UnwindFileKey> key_of(const UntrustedFile& file);
  // The same for a file as it is opened now. An open file of overlayfs may be mapped with its old content, and read
  // with its new content, if its owner wrote to it (copy-up).
  std::optional<program::UnwindFileKey> key_now(const UntrustedFile& file);

 private:
  load::Machine& machine_;
  program::MapId query_;
  program::ProgramId program_;
};

// ---- The existing children of a process of -p --follow: they are followed like new ones.

// Adds the children of the processes `pids`, their children, and so on, to the map of processes that are followed. The
// programs that maintain the map must be attached. Processes that these start meanwhile are not missed, because an
// event reports a process that is not in the map yet. Returns the processes that were there. Fails if the events cannot
// be had, or the map is full. The ids must be of the initial pid namespace.
Result<std::vector<uint32_t>> follow_existing_children(load::Machine& machine, const program::Program& program,
                                                       std::span<const uint32_t> pids);

// ---- What becomes of the files that a run probes. The kernel probes files, not paths: where a path leads to another
// file during the run, as after the upgrade of a package, nothing of the new file is seen.

class ProbedFiles {
 public:
  // `program` must outlive this.
  explicit ProbedFiles(const program::Program& program) : program_(program) {}

  // Looks at each path that has not been found to be changed. Missing paths are not reported: there is no code that
  // espy would not see. Takes about 1 µs for each.
  void look();
  // The same, at most once in ten seconds.
  void look_sometimes();
  // A sentence for each file that was replaced or written to.
  const std::vector<std::string>& changes() const { return changes_; }

 private:
  struct File {
    std::string path;
    FileState state;
  };
  void list_files();

  const program::Program& program_;
  bool has_list_ = false;
  std::vector<File> unchanged_;
  std::vector<std::string> changes_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace espy::runtime
