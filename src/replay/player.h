// replay: the events of a recording happen in the simulator, one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "program/program.h"
#include "recording/reader.h"
#include "simulator/simulator.h"
#include "spec/provider.h"

namespace espy::replay {

// ---- The context of a program over a recording: a record with the fields of an event.
//
// A number has 8 bytes; chars and bytes have the bytes of their type. A text is after the fields. A u32 has its offset
// in the low half and its length in the high half (spec::Recipe::kDataLoc).

struct ContextShape {
  std::vector<std::optional<uint32_t>> places;  // offsets of the fields; nullopt: the field is in no context
  std::vector<uint32_t> sizes;                  // of chars and bytes
  uint32_t size_bytes = 0;                      // without texts
};

// The layout may be of any content: fields that are larger than any context are skipped.
ContextShape context_shape(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types);

class Context {
 public:
  Context(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types)
      : layout_(layout), shape_(context_shape(layout, kernel, types)) {}

  // Valid until the next call.
  std::span<std::byte> fill(const recording::Event& event);

 private:
  void append_text(uint32_t place, std::string_view text);

  const recording::Layout& layout_;
  ContextShape shape_;
  std::vector<std::byte> record_;
};

// ---- Player: makes the events of a recording happen in the simulator, one by one.
//
// In: a Reader, and a program that is loaded into the simulator and attached. Out: runs of the program, each in the
// world of its event: time, CPU, task, arguments, the memory that was recorded with them, stacks. Timers run on the
// clock of the recording, between the events.

// An instruction of the script that needs data that was not recorded.
struct Missing {
  source::Span span;
  std::string sentence;  // "the user stack was not recorded"
  std::string hint;
};

class Player {
 public:
  using TimerOf = std::function<spec::Timer(const program::Probe&)>;

  // The arguments must outlive the player.
  Player(recording::Reader& reader, simulator::Simulator& machine, const program::Program& program,
         kernel::Kernel& kernel, types::Types& types, TimerOf timer_of);

  // Plays the next event or expiry of a timer. False if there are no more. The error is from the simulator, or from
  // `missing`.
  Result<bool> next();
  // Whether the script can be run over a recording, as far as that is known before its first event. `is_live`: while it
  // is made, so that actions on other processes would be expected to happen.
  Status check(bool is_live);
  // Makes the current task espy, as for `end`, at the time of the last played event, or at the end of the recording.
  void leave();
  // Set once `next` has failed because of it.
  const std::optional<Missing>& missing() const { return missing_; }

 private:
  // What runs at the events of a recorded probe.
  struct Route {
    std::vector<simulator::Attachment> attachments;
    std::optional<Context> context;
  };
  struct Timer {
    simulator::Attachment attachment;
    uint32_t cpu = 0;
    uint64_t period_ns = 0;
    uint64_t due_ns = 0;
  };

  Status start();
  Status check_values();
  Status check_actions();
  bool has_task_addresses() const;
  Status check_value(types::TypeId type, source::Span span);
  bool any_part(types::TypeId id, const std::function<bool(const types::Type&)>& is_wanted) const;
  void find_task_members();
  void add_timers();
  const program::Probe* probe_of(const simulator::Attachment& attachment) const;
  Status play(const recording::Event& event);
  void enter_world(const recording::Event& event);
  void lend_memory(const recording::Event& event);
  void lend_task(const recording::Task& task);
  Result<bool> fire_timer(uint64_t until_ns);
  Status fire(const simulator::Attachment& attachment, std::span<std::byte> context);
  bool is_unread_number(uint64_t address) const;
  std::string hint_for(const simulator::Unrecorded& place) const;

  recording::Reader& reader_;
  simulator::Simulator& machine_;
  const program::Program& program_;
  kernel::Kernel& kernel_;
  types::Types& types_;
  TimerOf timer_of_;
  bool has_started_ = false;
  bool has_ended_ = false;                    // the recording
  bool has_event_ = false;                    // in `event_`, to be played next
  std::vector<std::optional<Route>> routes_;  // by the index of the recorded probe
  std::vector<Timer> timers_;
  std::vector<std::byte> timer_context_;
  std::vector<simulator::Memory::Lent> lent_;
  // Where members of task_struct are, and what they hold.
  struct TaskMembers {
    std::optional<uint32_t> pid, tgid, comm, parent, leader;
  };
  std::optional<TaskMembers> task_members_;  // set if the program reads them
  std::vector<uint64_t> task_addresses_;     // of the parents, and of the group's leader
  recording::Event event_;
  std::optional<Missing> missing_;
};

}  // namespace espy::replay
