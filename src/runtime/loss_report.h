// The account of a run, and what it says at the end: a sentence for each thing that went wrong.
#pragma once

#include <cstdint>
#include <map>

#include "load/machine.h"
#include "output/decode.h"
#include "output/loss_report.h"
#include "output/sink.h"
#include "program/program.h"

namespace espy::runtime {

// What the session saw itself, and no program counts.
struct SeenLosses {
  uint64_t lost_records = 0;
  output::TruncatedStrings truncated_strings;
  std::map<program::ProgramId, uint64_t> truncated_by_program;  // those of records, by who sent them
};

// Once nothing fires any more.
output::LossReport make_loss_report(load::Machine& machine, const program::Program& program, const SeenLosses& seen);

void show_losses(load::Machine& machine, const program::Program& program, const SeenLosses& seen,
                 const output::LossReport& loss_report, output::Sink& sink);

}  // namespace espy::runtime
