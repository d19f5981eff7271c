// What a run lost: the counters of the programs and of the session as an output::LossReport, and as messages.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
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
  std::map<program::ProgramId, uint64_t> dropped_by_program;     // records that were not handled, as the run had to end
  uint64_t unfinished_records = 0;                               // that a program had begun
  std::map<program::ProgramId, uint64_t> unfinished_by_program;  // runs that waited for memory of their process
  std::vector<uint64_t> unhandled_by_program;                    // those for which memory ran out, by ProgramId
  output::TruncatedStrings truncated_strings;
  std::map<program::ProgramId, uint64_t> truncated_by_program;   // those of records
  std::function<SkippedEvents(program::ProgramId)> over_budget;  // events while a program was off
  std::vector<std::string> file_changes;                         // of files that are probed: sentences
  output::RecordingGaps gaps;
  uint64_t uncertain_addresses = 0;  // as in output::LossReport
  std::vector<std::string> others;   // as in output::LossReport, without those that make_loss_report() finds
};

// While probes are attached, the counts are of slightly different moments.
output::LossReport make_loss_report(load::Machine& machine, const program::Program& program, const UserLosses& losses);

// Sends the sink a message for each kind of loss that has occurred.
void report_losses(load::Machine& machine, const program::Program& program, const UserLosses& losses,
                   const output::LossReport& loss_report, const source::Sources& sources, const spec::Config& config,
                   output::Sink& sink);

}  // namespace espy::runtime
