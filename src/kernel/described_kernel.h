// A kernel that is known by description alone, as a recording has it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace espy::kernel {

struct KernelDescription {
  struct Tracepoint {
    std::string category, event;
    std::string format;  // as in tracefs; may be of any content
  };
  const Arch* arch = nullptr;
  uint32_t page_size_bytes = 0;
  uint32_t cpu_count = 0;
  std::vector<Tracepoint> tracepoints;
  std::function<bool(Feature)> has;
};

// It has these tracepoints, and neither types nor functions.
std::unique_ptr<Kernel> make_described_kernel(const KernelDescription& description);

}  // namespace espy::kernel
