// watch: --watch, which shows the maps of a live run: on a terminal in place, elsewhere as text after each interval.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/live_run.h"

namespace espy::watch {

struct WatchOptions {
  uint64_t interval_ns = 1'000'000'000;
  std::string script;  // its name
  output::TextStyle style;
  std::set<std::string> scratch_maps = {};  // the names of folded maps
  bool has_colors = true;
  bool is_text_hidden = true;       // the screen hides where the output of the script goes
  bool are_messages_hidden = true;  // ... and where messages go
};

// A server of a run whose `sink` takes the output of the run.
class Watch : public runtime::RunServer {
 public:
  virtual output::Sink& sink() = 0;
};

// Shows a screen if there is one (watch/screen.h). `program` and `sink` must outlive the watch.
Result<std::unique_ptr<Watch>> make_watch(WatchOptions options, const program::Program& program, output::Sink& sink);

// Returns a descriptor that is readable at each interval. The first time comes after `first_ns`, which must not be 0.
Result<OwnedFd> make_timer(uint64_t first_ns, uint64_t interval_ns);
// Returns whether an interval has passed since the last call.
bool take_tick(int timer);

// --watch where there is no terminal: after each interval the time, and the maps as print() shows them.
class Printer final : public Watch {
 public:
  static Result<std::unique_ptr<Watch>> create(uint64_t interval_ns, const program::Program& program,
                                               output::Sink& sink);

  output::Sink& sink() override { return sink_; }
  int fd() const override { return timer_.get(); }
  void serve(runtime::LiveRun& run) override;
  void end(runtime::LiveRun&) override {}

 private:
  Printer(OwnedFd timer, const program::Program& program, output::Sink& sink)
      : timer_(std::move(timer)), program_(program), sink_(sink) {}

  OwnedFd timer_;
  const program::Program& program_;
  output::Sink& sink_;
};

// Reads all maps at this moment, in the order of their names.
std::vector<output::MapView> read_maps(runtime::LiveRun& run, const program::Program& program);
// "12:03:04"
std::string clock_text();

}  // namespace espy::watch
