// The script that `espy record` runs; `--dump=script` shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "recording/recording.h"

namespace espy::cli {

struct RecordScript {
  // Each action emits one printf(), whose format begins with the index of its probe. Its values are those of
  // kEventFields, then those of the probe's fields.
  std::string text;
  std::vector<recording::Probe> probes;
  std::vector<recording::Tracepoint> tracepoints;
};

// nsecs, cpu, pid, tid, uid, gid, cgroup, comm.
constexpr size_t kEventFields = 8;

// `targets`: attach points, which may have wildcards. `max_text_bytes`: of a text, with its NUL.
Result<RecordScript> write_record_script(std::span<const std::string> targets, uint32_t max_text_bytes,
                                         Environment& environment);

}  // namespace espy::cli
