// Losses that are told when they begin: a map that is full shows wrong numbers from then on, and the run may last for
// hours. All other losses, and the sums of these, come at the end (loss_report.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

class FirstLosses {
 public:
  FirstLosses(load::Machine& machine, const program::Program& program, output::Sink& sink);

  // How long to wait for other events, at most; -1: there is nothing to look for any more.
  int longest_wait_ms() const { return waiting_.empty() ? -1 : kIntervalMs; }
  // Looks at the counters once a second, and sends a message for each kind of loss that has begun.
  void look();

 private:
  static constexpr int kIntervalMs = 1000;

  // The counters of one sentence, one for each program.
  struct Loss {
    std::string what;
    std::vector<uint32_t> offsets_bytes;  // in the globals
  };

  load::Machine& machine_;
  const program::Program& program_;
  output::Sink& sink_;
  std::vector<Loss> waiting_;  // that have not begun
  uint64_t next_look_ns_ = 0;
};

}  // namespace espy::runtime
