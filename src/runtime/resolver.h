// Answers for output::Resolver: stacks from their maps, names from the symbolizer, users, times.
#pragma once

#include "load/machine.h"
#include "output/decode.h"
#include "program/program.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// The arguments must outlive what is returned. `shows_source`: stacks show what debug information tells.
output::Resolver make_resolver(load::Machine& machine, const program::Program& program, symbols::Symbolizer& symbols,
                               bool shows_source);

// strftime(3) with `%f` for microseconds, of a time on `clock` (a clockid of clock_gettime: CLOCK_MONOTONIC,
// CLOCK_BOOTTIME, CLOCK_TAI), or of the wall clock where that is CLOCK_REALTIME.
std::string format_time(std::string_view format, uint64_t ns, uint32_t clock);

// CLOCK_REALTIME minus `clock`, now, in nanoseconds.
int64_t wall_clock_offset_ns(uint32_t clock);

}  // namespace espy::runtime
