// ProcessWatch: tells the symbolizer what processes execute and map, so that it can name the code of those that have
// ended before it looks. Runs only for programs that take user stacks or symbols.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "load/process_events.h"
#include "program/program.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// The builtin whose records say that an address of a process is to be symbolized.
constexpr std::string_view kRememberProcess = "__remember_process";

class ProcessWatch {
 public:
  explicit ProcessWatch(symbols::Symbolizer& symbols) : symbols_(symbols) {}
  ProcessWatch(const ProcessWatch&) = delete;  // the symbolizer calls it
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() { symbols_.on_lookup(nullptr); }

  // Without effect if the program shows no user addresses or the kernel does not allow it.
  void start(const program::Program& program, const spec::Config& config);
  void drain();
  // Call it when all records of the programs have been handled.
  void forget_ended();
  // Returns how many events the kernel had no room for.
  uint64_t lost_events() const { return events_ ? events_->lost() : 0; }

 private:
  symbols::Symbolizer& symbols_;
  std::optional<load::ProcessEvents> events_;
};

}  // namespace espy::runtime
