#include "runtime/event_dispatcher.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/end_request.h"
#include "base/fatal.h"
#include "program/layout.h"

namespace espy::runtime {

namespace {

constexpr size_t kBatchRecords = 65536;
constexpr uint64_t kBatchNs = 100'000'000;
constexpr size_t kRecordsPerClockRead = 64;
constexpr uint64_t kRestNs = 500'000'000;
constexpr uint64_t kUnfinishedNs = 200'000'000;

Ring make_ring(load::Machine& machine, const program::Program& program) {
  if (!program.ring.valid()) return {{}, 0, 0, 0};
  const program::BpfMap& shape = program.maps[program.ring];
  std::function<void(uint32_t)> map_whole;
  if (shape.first_bytes != 0) {
    map_whole = [&machine, ring = program.ring](uint32_t cpu) {
      // The addresses are reserved and the pages exist: this fails only if there is no memory for page tables.
      if (!machine.map_value(ring, cpu)) throw std::bad_alloc();
    };
  }
  return {machine.memory(program.ring), shape.value_size, program.ring_bytes,
          program::ring_data_offset(program.page_size_bytes), std::move(map_whole)};
}

// An explanation of the helper's error where there is a better one than that of strerror(3).
std::string helper_message(std::string_view helper, int64_t code) {
  if (helper == "map_update_elem" && code == -E2BIG)
    return "Map full; can't update element. Try increasing max_map_keys config or manually setting the max entries in "
           "a map declaration e.g. `let @a = hash(5000)`";
  if (helper == "map_lookup_elem" && code == 0) return "Can't lookup map element because it does not exist.";
  if (helper == "map_delete_elem" && code == -ENOENT) return "Can't delete map element because it does not exist.";
  return std::strerror(static_cast<int>(-code));
}

// The handler of events that belong to no builtin: a BPF helper that has failed (-k).
void handle_helper_error(EventRecord& event) {
  const source::Sources& sources = event.context().sources();
  const source::Span span = event.schema().span;
  const source::Extent at = sources.extent(span);
  const std::string& helper = event.schema().literals[0];
  const std::string message = helper_message(helper, event.integer(0));
  const std::string excerpt = source::excerpt(span, sources);
  event.context().sink().helper_error(
      {helper, event.integer(0), message, at.source, at.line, at.begin_column, at.end_column, excerpt});
}

}  // namespace

EventDispatcher::EventDispatcher(load::Machine& machine, const program::Program& program,
                                 const spec::Registry& registry, HandlerContext& context, RecordTap* tap)
    : machine_(machine),
      program_(program),
      context_(context),
      tap_(tap),
      ring_(make_ring(machine, program)),
      unhandled_by_program_(program.programs.size()) {
  for (const program::EventSchema& schema : program.events) {
    if (schema.builtin.empty()) {
      handlers_.push_back(handle_helper_error);
      continue;
    }
    const spec::Builtin* builtin = registry.find_builtin(schema.builtin);
    CHECK(builtin != nullptr && builtin->handle != nullptr);
    handlers_.push_back(builtin->handle);
  }
}

program::EventId EventDispatcher::event_of(std::span<const std::byte> record) const {
  return program::EventId{reinterpret_cast<const program::RecordHeader*>(record.data())->event_plus_one - 1};
}

// Counts the record if memory runs out, and goes on to the next one, which may need less.
void EventDispatcher::dispatch(std::span<const std::byte> record) {
  try {
    handle(record);
  } catch (const std::bad_alloc&) {
    is_out_of_memory_ = true;
    if (const program::ProgramId id = program_.events[event_of(record)].program; id.valid())
      ++unhandled_by_program_[id.index];
    if (tap_ != nullptr) tap_->lost(1);
  }
}

void EventDispatcher::handle(std::span<const std::byte> record) {
  const program::EventId id = event_of(record);
  const program::EventSchema& schema = program_.events[id];
  if (tap_ != nullptr && tap_->take(schema, record, context_.decoder())) return;
  EventRecord event(context_, schema, record);
  const uint64_t& truncated = context_.decoder().truncated_strings().count;
  const uint64_t truncated_before = truncated;
  handlers_[id.index](event);
  if (truncated > truncated_before) truncated_by_program_[schema.program] += truncated - truncated_before;
}

void EventDispatcher::note_losses() {
  const uint64_t lost = ring_.lost();
  if (lost <= lost_records_) return;
  context_.sink().lost(lost - lost_records_);
  if (tap_ != nullptr) tap_->lost(lost - lost_records_);
  context_.spans().note_losses();
  lost_records_ = lost;
}

uint64_t EventDispatcher::waiting_runs(program::ProgramId id) const {
  const program::BpfProgram& program = program_.programs[id];
  return program.is_sleepable ? load_le(machine_.memory(program_.globals), program.waiting_offset) : 0;
}

// A program may run still, and be held up by reading memory of its process.
bool EventDispatcher::has_unfinished() const {
  const auto waits = [this](program::ProgramId id) { return waiting_runs(id) > 0; };
  return ring_.unfinished_cpus() > 0 || std::ranges::any_of(program_.programs.ids(), waits);
}

// A run that goes on between the two looks is seen by the second one, for the record that it then begins.
void EventDispatcher::note_unfinished() {
  uint64_t runs = 0;
  for (const program::ProgramId id : program_.programs.ids()) {
    const uint64_t count = waiting_runs(id);
    if (count > 0) unfinished_by_program_[id] = count;
    runs += count;
  }
  const uint64_t records = ring_.unfinished_cpus();
  unfinished_records_ = records > runs ? records - runs : 0;  // a run that waits may have begun its record
  if (tap_ != nullptr && runs + unfinished_records_ > 0) tap_->lost(runs + unfinished_records_);
}

size_t EventDispatcher::drain() {
  size_t visited = 0;
  uint64_t begin_ns = 0;
  has_more_ = false;
  const auto is_long = [&] {
    if (++visited % kRecordsPerClockRead != 0) return false;
    const uint64_t now_ns = monotonic_ns();
    if (begin_ns == 0) begin_ns = now_ns;
    return now_ns - begin_ns >= kBatchNs;
  };
  const size_t count = ring_.drain(
      [&](std::span<const std::byte> record) {
        dispatch(record);
        has_more_ = context_.take_has_run_command() || is_end_requested() || is_out_of_memory_ || is_long();
        return !has_more_;
      },
      kBatchRecords);
  note_losses();
  return count;
}

void EventDispatcher::drain_present() {
  const auto globals = machine_.memory(program_.globals);
  if (globals.empty()) return;
  const uint64_t end = load_le(globals, program_.sequence_offset);
  const auto visit = [&](std::span<const std::byte> record) {
    dispatch(record);
    return !is_end_requested();
  };
  while (!is_end_requested() && ring_.drain(visit, kBatchRecords, end) > 0) {
  }
  note_losses();
}

void EventDispatcher::drain_all() {
  const auto visit = [&](std::span<const std::byte> record) {
    dispatch(record);
    return true;
  };
  while (ring_.drain(visit, kBatchRecords) > 0) {
  }
  note_losses();
}

void EventDispatcher::drain_rest() {
  uint64_t begin_ns = 0;
  const auto is_late = [&] {
    if (!is_end_requested()) return false;
    const uint64_t now_ns = monotonic_ns();
    if (begin_ns == 0) begin_ns = now_ns;
    return now_ns - begin_ns >= kRestNs || context_.has_left_command();
  };
  const auto visit = [&](std::span<const std::byte> record) {
    if (!is_late()) {
      dispatch(record);
      return true;
    }
    ++dropped_by_program_[program_.events[event_of(record)].program];
    if (tap_ != nullptr) tap_->lost(1);
    return true;
  };
  while (ring_.drain(visit, kBatchRecords) > 0) {
  }
  for (const uint64_t wait_ns = monotonic_ns(); has_unfinished() && monotonic_ns() - wait_ns < kUnfinishedNs;) {
    ::usleep(1000);
    ring_.drain(visit, kBatchRecords);
  }
  if (!dropped_by_program_.empty()) context_.spans().note_losses();
  note_losses();
}

}  // namespace espy::runtime
