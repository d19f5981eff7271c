// How often probes fired, by the counters of their programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "load/machine.h"
#include "program/program.h"

namespace espy::runtime {

// Returns 0 if the program does not count.
uint64_t hits_of(load::Machine& machine, const program::Program& program, program::ProbeId probe);

// The sum of the probes of one program on one CPU, in these counters. 0 if there are none.
uint64_t count_on_cpu(std::span<const std::byte> globals, const program::Program& program,
                      const program::HitCounters& counters, program::ProgramId id, uint32_t cpu);

}  // namespace espy::runtime
