// record: `espy record` and --record.
//
// Takes attach points, or what a script reads. It builds a script whose records have these values (record_script.h),
// runs it, and writes its records as events of a recording.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/record_script.h"
#include "recording/writer.h"
#include "run/host.h"
#include "runtime/event_dispatcher.h"

namespace espy::record {

// ---- Recorder: the records of the script of write_record_script(), as events of a recording.

class Recorder final : public runtime::RecordTap {
 public:
  // The references must outlive the recorder. `parents`: how many parents of a task the records have.
  Recorder(recording::Writer writer, const recording::Description& description, const types::Types& types,
           symbols::Symbolizer& symbols, std::string_view signal_trampoline, uint32_t parents)
      : writer_(std::move(writer)),
        description_(description),
        types_(types),
        symbols_(symbols),
        signal_trampoline_(signal_trampoline),
        parents_(parents) {}

  // The writer is of the first file of the ring.
  void use_ring(recording::FileRing* ring) { ring_ = ring; }
  // Another process reads the file meanwhile: it gets events after this time at the latest. `on_written` is called
  // after each block. `marks_time`: also if there are none.
  void write_at_once(uint64_t longest_wait_ns, bool marks_time, std::function<void()> on_written);
  // Call it with the program before the first record; it must outlive the recorder.
  void use(const program::Program& program);

  bool take(const program::EventSchema& schema, std::span<const std::byte> record,
            runtime::RecordDecoder& decoder) override;
  void lost(uint64_t count) override { writer_.note_lost(count); }
  Status batch_end() override;

  // Writes what a recording ends with. Later calls return what the first one did.
  Status finish(std::span<const std::string> incomplete) override;
  const recording::Writer& writer() const { return writer_; }

 private:
  static constexpr uint32_t kNoLayout = UINT32_MAX;

  // A stack that records refer to. Equal references are of equal stacks.
  struct KnownStack {
    std::vector<recording::Place> places;
    std::vector<std::vector<recording::Frame>> names;  // of each place
    uint64_t number = 0;                               // in the block `block`
    uint64_t block = UINT64_MAX;
  };
  using StackKey = std::tuple<uint32_t, uint64_t, uint64_t, uint32_t>;  // type, reference, kind and process, task

  void keep_error(Status done) {
    if (status_) status_ = std::move(done);
  }
  uint32_t layout_of(const program::EventSchema& schema);
  void note_stacks(const program::EventSchema& schema, uint32_t layout, std::span<const std::byte> record,
                   runtime::RecordDecoder& decoder);
  uint64_t note_stack(const program::EventField& field, std::span<const std::byte> record,
                      runtime::RecordDecoder& decoder);
  KnownStack decode_stack(const program::EventField& field, std::span<const std::byte> record,
                          runtime::RecordDecoder& decoder) const;
  void note_task(const program::EventSchema& schema, std::span<const std::byte> record);
  void note_names(const program::EventSchema& schema, uint32_t layout, std::span<const std::byte> record,
                  runtime::RecordDecoder& decoder);
  void note_name(const recording::Place& place, const std::string& symbol);
  std::string kernel_name(uint64_t address);
  std::string code_name(uint64_t address);
  static std::vector<bool> named_fields(const recording::Description& description, const recording::Layout& layout);
  size_t first_value() const { return kEventFields + 2 * size_t{parents_}; }
  int64_t number(const program::EventField& field, std::span<const std::byte> record) const;
  std::string_view bytes(const program::EventField& field, std::span<const std::byte> record) const;
  std::string_view text(const program::EventField& field, std::span<const std::byte> record) const;

  void turn_ring();

  recording::Writer writer_;
  recording::FileRing* ring_ = nullptr;
  uint64_t longest_wait_ns_ = 1'000'000'000;  // of an event that is not written yet
  bool marks_time_ = false;
  std::function<void()> on_written_;
  uint64_t told_block_ = 0;    // blocks that were written when on_written was last called
  uint64_t turned_block_ = 0;  // blocks that were written when the ring was last turned
  const recording::Description& description_;
  const types::Types& types_;
  symbols::Symbolizer& symbols_;
  std::string_view signal_trampoline_;
  uint32_t parents_ = 0;
  std::unordered_map<recording::Place, std::string, recording::HashPlace> names_;  // of addresses in values; a cache
  std::vector<std::vector<bool>> named_fields_;                                    // of each layout
  // By the index of a probe in the program, those in the description that have its name: one for each layout.
  std::vector<std::vector<uint32_t>> probes_;
  std::unordered_map<const program::EventSchema*, uint32_t> layouts_;
  std::map<StackKey, KnownStack> stacks_;
  std::vector<uint64_t> noted_stacks_;  // of the event
  recording::Task task_;
  uint64_t last_flush_ns_ = 0, last_turn_ns_ = 0;
  bool is_finished_ = false;
  Status status_;
};

// ---- From a RecordScript to the recording of its events.

// Where a recording goes, and what it says of itself.
struct RecordPlan {
  std::string path;
  std::string command;  // the command line
  recording::RingLimits ring;
  // Another process reads the file while it is written; null: none does.
  struct Reader {
    bool needs_time = false;           // also where there are no events
    std::function<Status()> on_ready;  // the probes are attached; the command of -c has not begun
    std::function<void()> on_written;
  };
  const Reader* reader = nullptr;
};

// Returns the options of a run of the script, which prints nothing: messages go to standard error.
run::RunOptions options_of_recorder(const run::RunOptions& options);

// Says on standard error what of the events the recording will not have.
void show_warnings(const RecordScript& script);

// Runs the script until it ends, and shows a summary. Returns the exit status; has printed all errors.
int run_recorder(const run::RunOptions& options, const run::Host& host, run::Environment& environment,
                 const RecordWishes& wishes, RecordScript script, const RecordPlan& plan);

// ---- --record: a run that shows what its script prints, and records what the script reads.
//
// Two processes share the work. One records the events, as `espy record --for SCRIPT` does; the other one runs the
// script over the recording while it is written, as `espy -i FILE` does afterwards. So both print the same, losses
// included, and a traced process pays for the recording alone.

// Requires options.record.file. Returns the exit status; has printed all errors.
int run_recorded(const run::RunOptions& options, const run::Host& host);

}  // namespace espy::record
