// The functions of output::Resolver: stacks from their maps, names from the symbolizer, users, cgroups, times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/machine.h"
#include "output/decode.h"
#include "program/program.h"
#include "runtime/unwind_tables.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// What the frames of user stacks are shown with.
struct StackDetail {
  bool has_source = false;  // source lines and inlined functions
  bool has_files = false;   // output::Frame::code
};

// The arguments must outlive the result.
output::Resolver make_resolver(load::Machine& machine, const program::Program& program, symbols::Symbolizer& symbols,
                               const UnwoundStacks& unwound_stacks, StackDetail detail);

// Formats a time of `clock` (a clockid of clock_gettime(2)), in nanoseconds, as local time by strftime(3), with `%f`
// for microseconds.
std::string format_time(std::string_view format, uint64_t ns, uint32_t clock);

// Returns the present CLOCK_REALTIME minus `clock`, in nanoseconds.
int64_t wall_clock_offset_ns(uint32_t clock);
// Returns by how many seconds somebody has set the clock since the first call of wall_clock_offset_ns(). 0: by none, or
// there was no call.
double wall_clock_step_seconds();

}  // namespace espy::runtime
