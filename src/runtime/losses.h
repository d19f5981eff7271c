// What a run lost: the counters of the programs and of the session as an output::LossReport, and as messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "load/machine.h"
#include "output/decode.h"
#include "output/loss_report.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/budget_keeper.h"
#include "spec/config.h"

namespace espy::runtime {

// Losses that user space counts.
struct UserLosses {
  uint64_t lost_records = 0;
  std::map<program::ProgramId, uint64_t> dropped_by_program;     // records that were not handled, because the run had
                                                                 // to end
  uint64_t unfinished_records = 0;                               // that a program had begun
  std::map<program::ProgramId, uint64_t> unfinished_by_program;  // runs that waited for memory of their process
  std::vector<uint64_t> unhandled_by_program;                    // those for which memory ran out, by ProgramId
  output::TruncatedStrings truncated_strings;
  std::map<program::ProgramId, uint64_t> truncated_by_program;   // strings of records
  std::function<SkippedEvents(program::ProgramId)> over_budget;  // events while a program was off
  std::vector<std::string> file_changes;                         // of files that are probed: sentences
  output::RecordingGaps gaps;
  uint64_t uncertain_addresses = 0;  // as in output::LossReport
  std::vector<std::string> others;   // as in output::LossReport, without the sentences that make_loss_report() finds
};

// While probes are attached, the counts are of slightly different moments.
output::LossReport make_loss_report(load::Machine& machine, const program::Program& program, const UserLosses& losses);

// Sends the sink a message for each kind of loss that has occurred.
void report_losses(load::Machine& machine, const program::Program& program, const UserLosses& losses,
                   const output::LossReport& loss_report, const source::Sources& sources, const spec::Config& config,
                   output::Sink& sink);

// ---- How often probes fired, by the counters of their programs.

// Returns 0 if the program does not count.
uint64_t hits_of(load::Machine& machine, const program::Program& program, program::ProbeId probe);

// The sum of the probes of one program on one CPU, in these counters. 0 if there are none.
uint64_t count_on_cpu(std::span<const std::byte> globals, const program::Program& program,
                      const program::HitCounters& counters, program::ProgramId id, uint32_t cpu);

// ---- Losses that are reported when they begin. A full map shows wrong numbers from then on, and the run may last for
// hours. All other losses, and the sums of these, come at the end (loss_report.h).

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
