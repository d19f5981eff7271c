// Contexts of programs, made of the values of a recorded event.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/kernel.h"
#include "recording/reader.h"
#include "simulator/memory.h"

namespace espy::replay {

class Context {
 public:
  virtual ~Context() = default;
  // Valid until the next call.
  virtual std::span<std::byte> fill(const recording::Event& event) = 0;
};

// A recorded tracepoint: "tracepoint:CATEGORY:EVENT".
struct TracepointName {
  std::string category, event;
};
std::optional<TracepointName> tracepoint_name(std::string_view probe);
// The raw tracepoint that all system calls share, of a tracepoint for one of them: "sys_enter", "sys_exit"; else "".
std::string raw_tracepoint_of_syscall(const TracepointName& name, kernel::Kernel& kernel);

// The words of sys_enter or sys_exit: the registers of the task, which are a region of `memory`, and a number.
Result<std::unique_ptr<Context>> make_syscall_context(const TracepointName& name, const recording::Probe& probe,
                                                      kernel::Kernel& kernel, types::Types& types,
                                                      simulator::Memory& memory);
// The record of a tracepoint, as tracefs describes it.
Result<std::unique_ptr<Context>> make_record_context(const TracepointName& name, const recording::Probe& probe,
                                                     kernel::Kernel& kernel, types::Types& types);
// Zeros, for programs that do not read their context.
std::unique_ptr<Context> make_empty_context();

}  // namespace espy::replay
