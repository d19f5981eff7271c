// A kernel that is known from a recording alone.
#pragma once

#include <functional>
#include <memory>

#include "kernel/kernel.h"
#include "recording/recording.h"

namespace espy::kernel {

// It has the types of the description, and neither functions nor tracepoints of its own: its probes are those of
// Kernel::recording(). `description` must outlive it; its `arch` must be known.
std::unique_ptr<Kernel> make_described_kernel(const recording::Description& description,
                                              std::function<bool(Feature)> has);

}  // namespace espy::kernel
