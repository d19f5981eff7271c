// From a RecordScript to the recording of its events.
#pragma once

#include <functional>
#include <string>

#include "cli/command.h"
#include "cli/record_script.h"
#include "recording/file_ring.h"

namespace espy::cli {

// Where a recording goes, and what it says of itself.
struct RecordPlan {
  std::string path;
  std::string command;  // the command line
  recording::RingLimits ring;
  // Another process reads the file while it is written; null: none does.
  struct Reader {
    bool needs_time = false;           // also where there are no events
    std::function<Status()> on_ready;  // the probes are attached; the command of -c has not begun
    std::function<void()> on_written;
  };
  const Reader* reader = nullptr;
};

// Returns the options of a run of the script, which prints nothing: messages go to standard error.
Options options_of_recorder(const Options& options);

// Says on standard error what of the events the recording will not have.
void show_warnings(const RecordScript& script);

// Runs the script until it ends, and shows a summary. Returns the exit status; has printed all errors.
int run_recorder(const Options& options, const Host& host, Environment& environment, const RecordWishes& wishes,
                 RecordScript script, const RecordPlan& plan);

}  // namespace espy::cli
