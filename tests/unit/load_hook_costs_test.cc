#include <gtest/gtest.h>

#include "kernel/arch/arch.h"
#include "load/hook_costs.h"

namespace espy::load {
namespace {

using program::Hook;
using program::ProgramId;

program::Program program_at(std::initializer_list<Hook> hooks) {
  program::Program out;
  for (const Hook hook : hooks) {
    program::BpfProgram code;
    code.hook = hook;
    out.programs.add(code);
  }
  return out;
}

const HookCosts kCosts({{Hook::kSystemCalls, false, false, 80}, {Hook::kRawTracepoint, false, false, 50}});

TEST(HookCosts, OneProgramMakesSystemCallsSlower) {
  const program::Program program = program_at({Hook::kRawTracepoint, Hook::kSystemCalls});
  EXPECT_EQ(kCosts.of(program, ProgramId{0}), 50);
  EXPECT_EQ(kCosts.of(program, ProgramId{1}), 80);
}

TEST(HookCosts, ProgramsAtSystemCallsShareTheSlowPath) {
  const program::Program program = program_at({Hook::kSystemCalls, Hook::kSystemCalls, Hook::kSystemCalls});
  for (const ProgramId id : program.programs.ids()) EXPECT_EQ(kCosts.of(program, id), 60);
}

TEST(HookCosts, WhereTheSlowPathIsLostInTheNoiseItTakesNothing) {
  const HookCosts noisy({{Hook::kSystemCalls, false, false, 60}, {Hook::kRawTracepoint, false, false, 70}});
  const program::Program program = program_at({Hook::kSystemCalls, Hook::kSystemCalls});
  EXPECT_EQ(noisy.of(program, ProgramId{0}), 60);
}

// Lower costs estimate two million events a second, beside as many system calls, at less than 10 % of a CPU.
TEST(HookCosts, AssumedCostsAreThoseOfProgramsThatDoSomething) {
  const program::Program program = program_at({Hook::kRawTracepoint, Hook::kSystemCalls, Hook::kTracepoint});
  EXPECT_GE(HookCosts::assumed().of(program, ProgramId{0}), 40);
  EXPECT_GE(HookCosts::assumed().of(program, ProgramId{1}), 60);
  EXPECT_GE(HookCosts::assumed().of(program, ProgramId{2}), 80);
}

// A uprobe and a uretprobe, each a program.
program::Program program_at_functions(uint64_t entry, uint64_t returns_of) {
  program::Program out = program_at({Hook::kUserFunction, Hook::kUserFunction});
  out.arch = &kernel::host_arch();
  out.programs[ProgramId{1}].sees_returns = true;
  for (uint32_t i = 0; i < 2; ++i) {
    program::Probe probe;
    probe.target = "/nonexistent/app";
    probe.address = i == 0 ? entry : returns_of;
    probe.program = ProgramId{i};
    out.probes.add(probe);
  }
  return out;
}

TEST(HookCosts, AReturnSharesTheTrapOfAProbeAtItsEntry) {
  HookCosts costs({{Hook::kUserFunction, false, false, 600}, {Hook::kUserFunction, true, false, 1000}});
  program::Program program = program_at_functions(0x40, 0x40);
  costs.look_at_probes(program);
  EXPECT_EQ(costs.of(program, ProgramId{0}), 600);
  EXPECT_EQ(costs.of(program, ProgramId{1}), 400);
}

TEST(HookCosts, AReturnOfAnotherFunctionHasItsOwnTrap) {
  HookCosts costs({{Hook::kUserFunction, false, false, 600}, {Hook::kUserFunction, true, false, 1000}});
  program::Program program = program_at_functions(0x40, 0x80);
  costs.look_at_probes(program);
  EXPECT_EQ(costs.of(program, ProgramId{1}), 1000);
}

TEST(HookCosts, WithoutAFigureNothingIsKnown) {
  const HookCosts failed({{Hook::kSystemCalls, false, false, 0, "the measurement failed"}});
  EXPECT_EQ(failed.of(program_at({Hook::kSystemCalls}), ProgramId{0}), std::nullopt);
}

}  // namespace
}  // namespace espy::load
