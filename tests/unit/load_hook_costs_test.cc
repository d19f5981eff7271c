#include <gtest/gtest.h>

#include "../support/fake_kernel.h"
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

// A kprobe and a kretprobe, each a program that is attached by perf.
program::Program program_at_kernel_functions(const char* entry, const char* returns_of, uint64_t offset) {
  program::Program out = program_at({Hook::kKernelFunction, Hook::kKernelFunction});
  out.arch = &kernel::host_arch();
  out.programs[ProgramId{1}].sees_returns = true;
  for (uint32_t i = 0; i < 2; ++i) {
    program::Probe probe;
    probe.target = "vmlinux";
    probe.function = i == 0 ? entry : returns_of;
    probe.offset = i == 0 ? offset : 0;
    probe.program = ProgramId{i};
    out.probes.add(probe);
  }
  return out;
}

const HookCosts kKernelFunctions({{Hook::kKernelFunction, false, false, 100},
                                  {Hook::kKernelFunction, true, false, 250},
                                  {Hook::kKernelFunction, false, true, 700}});

TEST(HookCosts, AKprobeWhereFtraceHasNoPlaceIsATrap) {
  testing::FakeKernel kernel;
  kernel.traceable = {"listed"};
  for (const auto& [function, offset, ns] :
       {std::tuple("listed", 0, 100), std::tuple("listed", 16, 700), std::tuple("unlisted", 0, 700)}) {
    HookCosts costs = kKernelFunctions;
    program::Program program = program_at_kernel_functions(function, "listed", static_cast<uint64_t>(offset));
    costs.look_at_probes(program, &kernel);
    EXPECT_EQ(costs.of(program, ProgramId{0}), ns);
    EXPECT_EQ(costs.of(program, ProgramId{1}), 250);
  }
}

TEST(HookCosts, AKprobeByALinkOfManyIsNoTrap) {
  testing::FakeKernel kernel;
  kernel.traceable = {"listed"};
  HookCosts costs = kKernelFunctions;
  program::Program program = program_at_kernel_functions("unlisted", "listed", 0);
  program.programs[ProgramId{0}].expected_attach_type = 42;  // BPF_TRACE_KPROBE_MULTI
  costs.look_at_probes(program, &kernel);
  EXPECT_EQ(costs.of(program, ProgramId{0}), 100);
}

TEST(HookCosts, AKretprobeSharesTheTrapOfAKprobe) {
  testing::FakeKernel kernel;
  kernel.traceable = {"listed"};
  HookCosts costs = kKernelFunctions;
  program::Program both = program_at_kernel_functions("unlisted", "unlisted", 0);
  costs.look_at_probes(both, &kernel);
  EXPECT_EQ(costs.of(both, ProgramId{1}), 250);
  program::Program apart = program_at_kernel_functions("listed", "unlisted", 0);
  costs = kKernelFunctions;
  costs.look_at_probes(apart, &kernel);
  EXPECT_EQ(costs.of(apart, ProgramId{1}), 850);
}

TEST(HookCosts, WithoutAFigureNothingIsKnown) {
  const HookCosts failed({{Hook::kSystemCalls, false, false, 0, "the measurement failed"}});
  EXPECT_EQ(failed.of(program_at({Hook::kSystemCalls}), ProgramId{0}), std::nullopt);
}

}  // namespace
}  // namespace espy::load
