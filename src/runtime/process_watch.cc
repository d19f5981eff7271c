#include "runtime/process_watch.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/resolver.h"

namespace espy::runtime {

void ProcessWatch::start(const program::Program& program, const spec::Config& config) {
  const bool is_wanted = std::ranges::any_of(
      program.events, [](const program::EventSchema& event) { return event.builtin == kRememberProcess; });
  // The events have ids of our pid namespace; if /proc has others, the two cannot be brought together.
  if (!is_wanted || (config.pid_namespace && !config.pid_namespace->numbers_proc)) return;
  auto events = load::ProcessEvents::open();
  if (!events) return;
  events_.emplace(std::move(*events));
  if (config.has_child) symbols_.process_started(config.child_pid, static_cast<uint32_t>(::getpid()));
  symbols_.on_lookup([this] { drain(); });
}

void ProcessWatch::drain() {
  using Kind = load::ProcessEvent::Kind;
  if (!events_) return;
  std::optional<uint64_t> clock_offset_ns;  // to measure it takes longer than to find no event
  events_->drain([&](const load::ProcessEvent& event) {
    if (!clock_offset_ns) clock_offset_ns = static_cast<uint64_t>(wall_clock_offset_ns(CLOCK_MONOTONIC));
    switch (event.kind) {
      case Kind::kStart: symbols_.process_started(event.pid, event.parent, event.time_ns); break;
      case Kind::kExecute: symbols_.process_executed(event.pid, event.time_ns); break;
      case Kind::kEnd: symbols_.process_ended(event.pid); break;
      case Kind::kMap:
        symbols_.process_mapped(event.pid,
                                {.start = event.start,
                                 .end = event.end,
                                 .file_offset = event.file_offset,
                                 .path = event.path,
                                 .device = event.device,
                                 .inode = event.inode,
                                 .seen_ns = event.time_ns + *clock_offset_ns,
                                 .executable = true},
                                event.time_ns);
        break;
    }
  });
}

void ProcessWatch::forget_ended() {
  if (events_) symbols_.forget_ended_processes();
}

}  // namespace espy::runtime
