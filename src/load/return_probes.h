// Return probes of kernel functions that are defined in tracefs.
//
// Before Linux 6.14 the kernel follows only so many calls of a probed function at a time, and misses the returns of
// others without a trace. A perf event of the kprobe PMU gets one call for each CPU (Linux 5.10; later twice as many,
// at least ten), which a few threads that wait in read(2) use up. A probe that is defined in tracefs says how many
// (Documentation/trace/kprobetrace.rst, MAXACTIVE).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/janitor.h"
#include "base/result.h"

namespace espy::load {

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
