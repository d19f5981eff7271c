// Player: makes the events of a recording happen in the simulator, one by one.
//
// In: a Reader, and a program that is loaded into the simulator and attached. Out: runs of the program, each in the
// world of its event: time, CPU, task, arguments, and the texts that were recorded with them. Timers run on the clock
// of the recording, between the events.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "program/program.h"
#include "recording/reader.h"
#include "replay/context.h"
#include "simulator/simulator.h"

namespace espy::replay {

// A probe or an instruction of the script that needs what was not recorded.
struct Missing {
  source::Span span;
  std::string sentence;  // "`tracepoint:sched:sched_switch` was not recorded"
  std::string hint;
};

class Player {
 public:
  // `is_timer` tells the probes that fire at a rate, once for the whole machine. The arguments must outlive the player.
  Player(recording::Reader& reader, simulator::Simulator& machine, const program::Program& program,
         kernel::Kernel& kernel, types::Types& types, std::function<bool(const program::Probe&)> is_timer);

  // Plays the next event or expiry of a timer. False if there are no more. The error is one of the simulator, or that
  // of `missing`.
  Result<bool> next();
  // Set once `next` has failed because of it.
  const std::optional<Missing>& missing() const { return missing_; }

 private:
  // What runs at the events of a recorded probe.
  struct Route {
    simulator::Attachment attachment;
    std::unique_ptr<Context> context;
  };
  struct Timer {
    simulator::Attachment attachment;
    uint64_t period_ns = 0;
    uint64_t due_ns = 0;
  };

  Status start();
  Status check_probes();
  Status check_values();
  bool has_symbols(types::TypeId id) const;
  Status add_routes(uint32_t index);
  const program::Probe* probe_of(const simulator::Attachment& attachment) const;
  Status play(const recording::Event& event);
  Result<bool> fire_timer(uint64_t until_ns);
  Status fire(const simulator::Attachment& attachment, std::span<std::byte> context);

  recording::Reader& reader_;
  simulator::Simulator& machine_;
  const program::Program& program_;
  kernel::Kernel& kernel_;
  types::Types& types_;
  std::function<bool(const program::Probe&)> is_timer_;
  bool has_started_ = false;
  bool has_ended_ = false;                  // the recording
  bool has_event_ = false;                  // in `event_`, to be played next
  std::vector<std::vector<Route>> routes_;  // by the index of the recorded probe
  std::vector<Timer> timers_;
  std::vector<std::byte> timer_context_;
  std::vector<simulator::Memory::Lent> lent_;
  recording::Event event_;
  std::optional<Missing> missing_;
};

}  // namespace espy::replay
