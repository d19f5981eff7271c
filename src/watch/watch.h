// --watch: shows the maps of a run while it goes on, on a terminal in place, elsewhere as text after each interval.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "output/sink.h"
#include "program/program.h"
#include "runtime/live_run.h"

namespace espy::watch {

struct WatchOptions {
  uint64_t interval_ns = 1'000'000'000;
  std::string script;  // its name
  output::TextStyle style;
  bool has_colors = true;
  bool is_text_hidden = true;       // the screen hides where the output of the script goes
  bool are_messages_hidden = true;  // ... and where messages go
};

// A server of a run whose `sink` takes the output of the run.
class Watch : public runtime::RunServer {
 public:
  virtual output::Sink& sink() = 0;
};

// Shows a screen if there is one (watch/terminal.h). `program` and `sink` must outlive the watch.
Result<std::unique_ptr<Watch>> make_watch(WatchOptions options, const program::Program& program, output::Sink& sink);

}  // namespace espy::watch
