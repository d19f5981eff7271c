// The script that `espy record` runs, a tree; `--dump=script` shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/script_reads.h"
#include "recording/recording.h"
#include "run/environment.h"
#include "run/run_script.h"

namespace espy::record {

constexpr uint32_t kMaxRecordDepth = 4;
constexpr uint32_t kMaxParents = 8;

struct RecordWishes {
  uint32_t max_text_bytes = 256;  // of a text, with its NUL, and of a struct
  uint32_t depth = 1;             // of pointers
  uint32_t parents = 1;           // of the task, with their names
  bool kernel_stack = false, user_stack = false;
  std::optional<ScriptReads> reads = {};  // of the scripts of --for, which need no more
};

struct RecordScript {
  // Each action emits one printf(), whose format begins with kRecordMark and the index of a layout. Its values are
  // kEventFields, the ids and names of parents, then the fields of the layout that have values.
  run::BuiltScript script;
  std::vector<recording::Type> types;
  std::vector<recording::Layout> layouts;
  std::vector<recording::Probe> probes;
  uint32_t parents = 0;  // of each task
  std::vector<std::string> warnings =
      {};  // values of events that the recording will not have, returns that end programs
};

constexpr std::string_view kRecordMark = "espy record ";
// probe, nsecs, cpu, pid, tid, uid, gid, cgroup, comm.
constexpr size_t kEventFields = 9;

// `targets`: attach points, which may have wildcards. The sources of `environment` get them.
Result<RecordScript> write_record_script(std::span<const std::string> targets, const RecordWishes& wishes,
                                         run::Environment& environment);

}  // namespace espy::record
