// EventDispatcher: takes records from the ring and calls the handler of each.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "load/machine.h"
#include "program/program.h"
#include "runtime/handler_context.h"
#include "runtime/ring.h"
#include "spec/registry.h"

namespace espy::runtime {

class EventDispatcher {
 public:
  // The arguments must outlive the dispatcher. Requires a handler in `registry` for every event of the program.
  EventDispatcher(load::Machine& machine, const program::Program& program, const spec::Registry& registry,
                  HandlerContext& context);

  // Handles the records that are in the ring, up to a batch, and reports new losses to the sink. Returns how many
  // records there were.
  size_t drain();
  // Drains until the ring is empty.
  void drain_all();

  uint64_t lost_records() const { return lost_records_; }  // by the last `drain`
  // The strings of records that max_strlen truncated, by the program that has sent the record.
  const std::map<program::ProgramId, uint64_t>& truncated_by_program() const { return truncated_by_program_; }

 private:
  void dispatch(std::span<const std::byte> record);

  const program::Program& program_;
  HandlerContext& context_;
  Ring ring_;
  std::vector<void (*)(EventRecord&)> handlers_;  // by EventId
  uint64_t lost_records_ = 0;
  std::map<program::ProgramId, uint64_t> truncated_by_program_;
};

}  // namespace espy::runtime
