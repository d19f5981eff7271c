// From the ring to the handlers of builtins, or to a tap that records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "load/machine.h"
#include "program/program.h"
#include "runtime/handler_context.h"
#include "runtime/record_decoder.h"
#include "runtime/ring.h"
#include "spec/registry.h"

namespace espy::runtime {

// ---- RecordTap: gets the records of a run as they are, instead of the builtins that have sent them.

class RecordTap {
 public:
  virtual ~RecordTap() = default;
  // Returns false for a record that its builtin is to handle.
  virtual bool take(const program::EventSchema& schema, std::span<const std::byte> record, RecordDecoder& decoder) = 0;
  // Records were lost since the last call.
  virtual void lost(uint64_t count) = 0;
  // Called whenever the rings were read. An error ends the run.
  virtual Status batch_end() = 0;
  // Called once there are no more. `incomplete`: sentences about missing data in them, without lost events.
  virtual Status finish(std::span<const std::string> incomplete) = 0;
};

// ---- EventDispatcher: takes records from the ring and calls the handler of each.

class EventDispatcher {
 public:
  // The arguments must outlive the dispatcher; `tap` may be null. Requires a handler in `registry` for every event of
  // the program.
  EventDispatcher(load::Machine& machine, const program::Program& program, const spec::Registry& registry,
                  HandlerContext& context, RecordTap* tap = nullptr);

  // Handles records that are in the ring, and reports new losses to the sink. Returns how many records there were. A
  // batch ends early once the end of the run is requested, after a command of system(), and after a tenth of a second:
  // `has_more` is true then.
  size_t drain();
  bool has_more() const { return has_more_; }
  // Handles the records that are there at the call, until the end of the run is requested.
  void drain_present();
  // Handles all records until the ring is empty.
  void drain_all();
  // The same for a run that ends. Once the end is requested, the rest is dropped and counted after half a second, or
  // after a system() command that was not waited for.
  void drain_rest();
  // Counts what programs have not finished; after the last call of those above.
  void note_unfinished();

  uint64_t lost_records() const { return lost_records_; }  // by the last call of any of these
  // Whether memory has run out while a record was handled.
  bool is_out_of_memory() const { return is_out_of_memory_; }
  // The records that were given up for it, by ProgramId.
  const std::vector<uint64_t>& unhandled_by_program() const { return unhandled_by_program_; }
  // The records that `drain_rest` has dropped, by the program that has sent them.
  const std::map<program::ProgramId, uint64_t>& dropped_by_program() const { return dropped_by_program_; }
  // The runs of each program that `note_unfinished` has found waiting for memory of their process.
  const std::map<program::ProgramId, uint64_t>& unfinished_by_program() const { return unfinished_by_program_; }
  // The CPUs with an unfinished record, except records of these runs; later records of the CPU are lost, too.
  uint64_t unfinished_records() const { return unfinished_records_; }
  // The strings of records that max_strlen truncated, by the program that has sent the record.
  const std::map<program::ProgramId, uint64_t>& truncated_by_program() const { return truncated_by_program_; }

 private:
  program::EventId event_of(std::span<const std::byte> record) const;
  void dispatch(std::span<const std::byte> record);
  void handle(std::span<const std::byte> record);
  uint64_t waiting_runs(program::ProgramId id) const;
  bool has_unfinished() const;
  void note_losses();

  load::Machine& machine_;
  const program::Program& program_;
  HandlerContext& context_;
  RecordTap* tap_;
  Ring ring_;
  std::vector<void (*)(EventRecord&)> handlers_;  // by EventId
  uint64_t lost_records_ = 0;
  uint64_t unfinished_records_ = 0;
  bool has_more_ = false;
  bool is_out_of_memory_ = false;
  std::vector<uint64_t> unhandled_by_program_;
  std::map<program::ProgramId, uint64_t> dropped_by_program_;
  std::map<program::ProgramId, uint64_t> unfinished_by_program_;
  std::map<program::ProgramId, uint64_t> truncated_by_program_;
};

}  // namespace espy::runtime
