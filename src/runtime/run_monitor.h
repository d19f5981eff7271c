// RunMonitor: waits for what ends a run besides exit(): a signal, the end of the watched processes, and the end of the
// last iterator. Runs the probes of SIGUSR1 on the way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "load/machine.h"
#include "program/program.h"
#include "runtime/live_run.h"
#include "runtime/probe_runner.h"
#include "runtime/run_control.h"

namespace espy::runtime {

class RunMonitor {
 public:
  // The arguments must outlive the monitor.
  RunMonitor(load::Machine& machine, const program::Program& program, const ProbeRunner& probes, Signals& signals)
      : machine_(machine), program_(program), probes_(probes), signals_(signals) {}
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // Starts to watch the signals, the processes `pids` and the machine's iterators. The run is over once all of the
  // processes have gone.
  Status start(std::span<const uint32_t> pids);
  // Ends the run when the directory is removed. Requires `start`.
  Status watch_directory(const std::string& path);
  // Lets `server` show `run` when requests come. Both must outlive the monitor.
  Status serve(RunServer& server, LiveRun& run);
  // Lets `wait` return when `fd` becomes readable. Requires `start`.
  Status wake_by(int fd);
  // Waits up to `timeout_ms` (-1: without limit) for one event. Requires `start`.
  Status wait(int timeout_ms);

  bool runs_iterator() const { return running_iterators_ > 0; }
  bool is_over() const { return is_over_; }
  // With --follow: all watched processes have ended, and processes that they started may continue. Nothing in the event
  // loop reports their end: the caller polls `has_followed_process`.
  bool polls_followed_processes() const { return polls_followed_processes_; }
  bool has_followed_process() const;

 private:
  Status watch_process(uint32_t pid);
  void end_processes();
  Status watch_iterator(int fd);
  Status handle_signal();

  load::Machine& machine_;
  const program::Program& program_;
  const ProbeRunner& probes_;
  Signals& signals_;
  std::vector<OwnedFd> pidfds_;
  OwnedFd inotify_;
  size_t running_iterators_ = 0;
  size_t running_processes_ = 0;  // of the watched ones
  bool is_over_ = false;
  bool polls_followed_processes_ = false;
  std::optional<EventLoop> loop_;
};

}  // namespace espy::runtime
