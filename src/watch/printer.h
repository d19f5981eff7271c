// Printer: --watch where there is no terminal: after each interval the time, and the maps as print() shows them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "watch/watch.h"

namespace espy::watch {

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
