// How return probes and probes on `nop` are attached, where kernels differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "kernel/arch/arch.h"

namespace espy::load {

// ---- Tries what a user probe on a `nop` does to a program, as kernels differ.

enum class NopProbe : uint8_t {
  kUnknown,  // it could not be tried
  kRefused,  // the kernel says that it cannot probe the instruction: in a file that is mapped later, it says nothing
  kBreaks,   // the program computes something else then, or ends
  kWorks,
};

// Probes the nop of `nop.example` in a child process, which calls that function, and takes the probe away. Needs the
// rights to attach user probes, and takes some milliseconds.
NopProbe try_probe_on(const kernel::ProbedNop& nop);

// ---- Return probes of kernel functions that are defined in tracefs.
//
// Before Linux 6.14 the kernel follows only so many calls of a probed function at a time, and misses the returns of
// others without a trace. A perf event of the kprobe PMU gets one call for each CPU (Linux 5.10; later twice as many,
// at least ten). A few threads that wait in read(2) use them up. A probe that is defined in tracefs says how many
// (Documentation/trace/kprobetrace.rst, MAXACTIVE).

class ReturnProbes {
 public:
  ReturnProbes() = default;
  ReturnProbes(const ReturnProbes&) = delete;
  ReturnProbes& operator=(const ReturnProbes&) = delete;
  // The kernel keeps a probe while a perf event of it is open, so that another process removes them all, after the end
  // of this one.
  ~ReturnProbes();

  // Defines the returns of a function (`vfs_read`, `module:function`), of which up to `max_calls` may be in progress.
  // Returns the id of the event, for perf_event_open(2). Fails where tracefs cannot be written, or the function cannot
  // be probed.
  Result<uint64_t> define(const std::string& function, uint32_t max_calls);

 private:
  uint32_t count_ = 0;
  std::optional<Janitor> janitor_;
};

}  // namespace espy::load
