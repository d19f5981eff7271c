// HookCosts: how long this machine takes to reach a program that a probe runs, and to return from it.
//
// In: the kernel. Out: nanoseconds by the kind of the hook, measured on calls that a child process makes, with and
// without an empty program attached. The child ends with its links open, so that nothing waits for them to close.
//
// Why it is measured: a trap and a single step take tens of microseconds on some virtual machines, ten times as long as
// elsewhere. The table, HookCosts::assumed(), serves where a measurement fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "program/program.h"

namespace espy::load {

struct HookCost {
  program::Hook hook = program::Hook::kOther;
  bool is_return = false;  // of functions: a probe of their return
  // User functions: the probe is on an instruction that the kernel does not emulate. Kernel functions: ftrace has no
  // place for the probe, so it is a trap.
  bool is_stepped = false;
  double ns = 0;             // an event
  std::string problem = {};  // not empty: why it was not measured
};

class HookCosts {
 public:
  HookCosts() = default;
  explicit HookCosts(std::vector<HookCost> all) : all_(std::move(all)) {}

  // Where nothing was measured: of a machine of the year 2024 that does other work as well, in round numbers.
  static HookCosts assumed();
  // What it takes to reach the program at an event, on average if it runs at entry and return, or serves several
  // probes; nullopt if unknown.
  std::optional<double> of(const program::Program& program, program::ProgramId id) const;
  // Finds out which probes of functions are stepped, and which share their trap with another. `kernel`: of the kernel's
  // functions as well.
  void look_at_probes(const program::Program& program, kernel::Kernel* kernel = nullptr);
  const std::vector<HookCost>& all() const { return all_; }

 private:
  std::optional<double> find(program::Hook hook, bool is_return, bool is_stepped) const;
  double of_system_calls(const program::Program& whole, double first_ns) const;
  void look_for_shared_traps(const program::Program& program);

  std::vector<HookCost> all_;
  std::map<program::ProgramId, double> stepped_share_;  // of the probes of a program
  std::map<program::ProgramId, double> shared_traps_;   // of returns, the share with a probe at the entry as well
};

// The hooks of a program, or all of them. Takes some milliseconds for each.
HookCosts measure_hook_costs(kernel::Kernel& kernel, const program::Program& program);
HookCosts measure_hook_costs(kernel::Kernel& kernel);

// "uprobe", "kretprobe"
std::string name_of(const HookCost& cost);

}  // namespace espy::load
