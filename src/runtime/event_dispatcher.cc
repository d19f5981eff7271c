#include "runtime/event_dispatcher.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "program/ring.h"

namespace espy::runtime {

namespace {

constexpr size_t kBatchRecords = 65536;  // between two checks for signals

Ring make_ring(load::Machine& machine, const program::Program& program) {
  if (!program.ring.valid()) return {{}, 0, 0, 0};
  const program::BpfMap& shape = program.maps[program.ring];
  std::function<void(uint32_t)> map_whole;
  if (shape.first_bytes != 0) {
    map_whole = [&machine, ring = program.ring](uint32_t cpu) {
      // The addresses are reserved and the pages exist: this fails only if there is no memory for page tables.
      CHECK(machine.map_value(ring, cpu));
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
                                 const spec::Registry& registry, HandlerContext& context)
    : program_(program), context_(context), ring_(make_ring(machine, program)) {
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

void EventDispatcher::dispatch(std::span<const std::byte> record) {
  const auto* header = reinterpret_cast<const program::RecordHeader*>(record.data());
  const program::EventId id{header->event_plus_one - 1};
  const program::EventSchema& schema = program_.events[id];
  EventRecord event(context_, schema, record);
  const uint64_t& truncated = context_.decoder().truncated_strings().count;
  const uint64_t truncated_before = truncated;
  handlers_[id.index](event);
  if (truncated > truncated_before) truncated_by_program_[schema.program] += truncated - truncated_before;
}

size_t EventDispatcher::drain() {
  const size_t count = ring_.drain([&](std::span<const std::byte> record) { dispatch(record); }, kBatchRecords);
  if (const uint64_t lost = ring_.lost(); lost > lost_records_) {
    context_.sink().lost(lost - lost_records_);
    context_.spans().note_losses();
    lost_records_ = lost;
  }
  return count;
}

void EventDispatcher::drain_all() {
  while (drain() > 0) {
  }
}

}  // namespace espy::runtime
