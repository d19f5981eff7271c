// Tries what a user probe on a `nop` does to a program, as kernels differ.
#pragma once

#include <cstdint>

#include "kernel/arch/arch.h"

namespace espy::load {

enum class NopProbe : uint8_t {
  kUnknown,  // it could not be tried
  kRefused,  // the kernel says that it cannot probe the instruction: in a file that is mapped later, it says nothing
  kBreaks,   // the program computes something else then, or ends
  kWorks,
};

// Probes the nop of `nop.example` in a child process, which calls that function, and takes the probe away. Needs the
// rights to attach user probes, and takes some milliseconds.
NopProbe try_probe_on(const kernel::ProbedNop& nop);

}  // namespace espy::load
