// Metrics: the whole text of /metrics: the maps of the script, and what espy says of its own run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "output/format.h"
#include "program/program.h"
#include "runtime/live_run.h"
#include "serve/described_map.h"
#include "serve/exposition.h"
#include "serve/map_metrics.h"

namespace espy::serve {

// Counts of the server, for its own metrics.
struct ServerCounts {
  size_t viewers = 0;
  uint64_t dropped_viewers = 0;
};

class Metrics {
 public:
  // The arguments must outlive the object. `script`: its name. `max_samples`: of a map.
  Metrics(const std::vector<DescribedMap>& maps, const program::Program& program, std::string script,
          output::TextStyle style, size_t max_samples);

  std::string text(runtime::LiveRun& run, const ServerCounts& counts, ExpositionFormat format);

 private:
  void write_maps(runtime::LiveRun& run, Exposition& out);
  void write_run(const output::LossReport& losses, const runtime::RunCost& cost, Exposition& out) const;

  const program::Program& program_;
  std::string script_;
  output::TextStyle style_;
  size_t max_samples_;
  double started_at_;  // seconds since the epoch
  std::vector<MapMetrics> maps_;
};

// The user and system time of this process so far, in seconds.
double cpu_seconds();

}  // namespace espy::serve
