// The keeper with a machine that is a model: a thread calls a probed function back to back, and each call takes a trap
// more while the probe is attached.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "idle_machine.h"
#include "runtime/budget_keeper.h"

namespace espy::runtime {
namespace {

using program::Hook;
using program::ProgramId;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStepNs = 50'000;
constexpr uint64_t kAttachNs = 10 * kMs, kTrapStaysNs = 1 * kMs, kDetachNs = 30 * kMs;
constexpr uint32_t kHits = 64, kSkipped = 128, kGates = 192, kSlice = 200, kCallers = 256;
constexpr uint32_t kCaller = 7;  // the process

class ModelMachine final : public load::IdleMachine {
 public:
  double call_ns = 2000, hook_ns = 500, action_ns = 100;
  double calls = 0;      // that the thread has made
  double probes_ns = 0;  // that it was in probes
  int resumed = 0;
  int failing_resumes = 0;  // the first of them, when some of the program's probes are attached
  int resumed_twice = 0;    // while it was attached
  uint64_t suspend_ns = 0;  // that `suspend` takes, while the probe still fires
  uint64_t silent_ns = 0;   // from the beginning, that the thread needs before its first call
  bool shares_cpu = false;  // the thread is on the CPU for two of five milliseconds, and waits for it else
  uint64_t cpu_ns = 0;      // that the thread was on the CPU

  // Runs the thread for a step.
  void step() {
    now_ns_ += kStepNs;
    if (shares_cpu && now_ns_ / kMs % 5 >= 2) return;
    cpu_ns += kStepNs;
    if (now_ns_ - kBeginNs < silent_ns) return;
    const bool is_open = word(kGates) == 0;
    const bool is_attached = suspended_ns_ == 0 || now_ns_ - suspended_ns_ < kTrapStaysNs;
    const double each = call_ns + (is_attached ? hook_ns : 0) + (is_attached && is_open ? action_ns : 0);
    const double count = static_cast<double>(kStepNs) / each;
    calls += count;
    probes_ns += count * (each - call_ns);
    if (is_attached) add(is_open ? kHits : kSkipped, count);
    if (is_attached && is_open && is_counting_) counted_ += count;
  }

  uint64_t word(uint32_t offset) const {
    uint64_t out = 0;
    std::memcpy(&out, globals_ + offset, sizeof(out));
    return out;
  }

  std::optional<uint64_t> process_cpu_ns(uint32_t pid) override {
    return pid == kCaller ? std::optional(cpu_ns) : std::nullopt;
  }
  std::optional<kernel::SchedulingTimes> scheduling_times(uint32_t) override {
    return kernel::SchedulingTimes{cpu_ns, now_ns_ - kBeginNs - cpu_ns};
  }
  std::span<std::byte> memory(program::MapId) override { return globals_; }
  uint64_t now_ns() override { return now_ns_; }
  Status count_runs(bool on) override {
    is_counting_ = on;
    return {};
  }
  Runs counted_runs(ProgramId) override {
    return {static_cast<uint64_t>(counted_), static_cast<uint64_t>(counted_ * action_ns)};
  }
  Status suspend(ProgramId) override {
    for (uint64_t i = 0; i < suspend_ns / kStepNs; ++i) step();
    suspended_ns_ = now_ns_;
    return {};
  }
  bool is_suspended(ProgramId) override { return suspended_ns_ != 0 && now_ns_ - suspended_ns_ >= kDetachNs; }
  Status resume(ProgramId) override {
    for (uint64_t i = 0; i < kAttachNs / kStepNs; ++i) step();
    resumed_twice += suspended_ns_ == 0 ? 1 : 0;
    suspended_ns_ = 0;
    ++resumed;
    return resumed <= failing_resumes ? Status(fail("out of memory", ENOMEM)) : Status();
  }
  uint64_t attached_count() const override { return 1; }

 private:
  // Whole events are counted; the rest is for the next step.
  void add(uint32_t offset, double count) {
    double& rest = rests_[offset == kHits ? 0 : 1];
    rest += count;
    const auto whole = static_cast<uint64_t>(rest);
    rest -= static_cast<double>(whole);
    put(offset, word(offset) + whole);
    constexpr uint32_t kElement = kCallers + kCaller * program::Gates::kCallerBytes;
    if (offset != kHits) return;
    put(kElement, kCaller);
    put(kElement + 8, word(kElement + 8) + whole);
  }
  void put(uint32_t offset, uint64_t value) { std::memcpy(globals_ + offset, &value, sizeof(value)); }

  static constexpr uint64_t kBeginNs = 1'000'000'000;
  std::byte globals_[kCallers + program::Gates::kCallers * program::Gates::kCallerBytes] = {};
  double rests_[2] = {};
  uint64_t now_ns_ = kBeginNs;
  bool is_counting_ = false;
  double counted_ = 0;
  uint64_t suspended_ns_ = 0;  // 0: it is attached
};

program::Program program_at(Hook hook) {
  program::Program out;
  out.globals = out.maps.add({.name = "globals"});
  program::BpfProgram code;
  code.hook = hook;
  out.programs.add(code);
  program::Probe probe;
  probe.name = "probe";
  probe.program = ProgramId{0};
  out.probes.add(probe);
  out.cpu_count = 1;
  out.hits = {kHits, 64};
  out.gates.offset_bytes = kGates;
  out.gates.slice_offset = kSlice;
  out.gates.skipped = {kSkipped, 64};
  out.gates.is_gated = {true};
  out.gates.caller_tables = {kCallers};
  return out;
}

struct Outcome {
  double slowdown = 0;  // of the thread: 0.05 is 5 %
  double counted = 0;   // of its calls: seen and skipped
  uint64_t estimated = 0;
  double unavoidable = 0;
};

Outcome run(ModelMachine& machine, Hook hook, double budget_cpus, uint64_t seconds = 10) {
  const program::Program program = program_at(hook);
  const load::HookCosts hooks({{hook, false, false, machine.hook_ns}});
  CostMeter meter(machine, program, hooks);
  BudgetKeeper keeper(machine, program, meter, hooks, budget_cpus);
  meter.start(machine.now_ns());
  keeper.start(machine.now_ns());
  uint64_t due_ns = 0;
  for (uint64_t i = 0; i < seconds * 1'000'000'000 / kStepNs; ++i) {
    machine.step();
    if (machine.now_ns() < due_ns) continue;
    const int wait_ms = std::min(meter.tick(machine.now_ns()), keeper.tick(machine.now_ns()));
    due_ns = machine.now_ns() + static_cast<uint64_t>(wait_ms) * kMs;
  }
  keeper.stop(machine.now_ns());
  const SkippedEvents skipped = keeper.skipped(ProgramId{0});
  const double counted = static_cast<double>(machine.word(kHits) + skipped.sum());
  const double total_ns = static_cast<double>(seconds) * 1e9;
  const double own_ns = (machine.shares_cpu ? static_cast<double>(machine.cpu_ns) : total_ns) - machine.probes_ns;
  return {machine.probes_ns / own_ns, counted / machine.calls, skipped.estimated, keeper.unavoidable_cpus()};
}

TEST(BudgetKeeper, DetachesUserProbesForMostOfTheTime) {
  ModelMachine machine;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.05);
  EXPECT_LT(outcome.slowdown, 0.06);
  EXPECT_GT(outcome.slowdown, 0.03);
  EXPECT_NEAR(outcome.counted, 1, 0.03);
  EXPECT_GT(outcome.estimated, 0u);
  EXPECT_GT(machine.resumed, 50);
}

TEST(BudgetKeeper, DetachesWhatWasAttachedOnlyInPart) {
  ModelMachine machine;
  machine.failing_resumes = 3;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.05);
  EXPECT_GT(machine.resumed, 50);
  EXPECT_EQ(machine.resumed_twice, 0);
  EXPECT_LT(outcome.slowdown, 0.06);
}

TEST(BudgetKeeper, KeepsTheBudgetOfAThreadThatWaitsForItsCpu) {
  ModelMachine machine;
  machine.call_ns = 1000;
  machine.shares_cpu = true;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.05);
  EXPECT_LT(outcome.slowdown, 0.07);
  EXPECT_GT(outcome.slowdown, 0.03);
  EXPECT_NEAR(outcome.counted, 1, 0.03);
}

TEST(BudgetKeeper, EstimatesCallsThatAreShorterThanTheTrap) {
  ModelMachine machine;
  machine.call_ns = 50;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.05);
  EXPECT_LT(outcome.slowdown, 0.07);
  EXPECT_NEAR(outcome.counted, 1, 0.05);
}

// The probe is turned off once: what comes then is known of the first time on alone, which begins before the first call
// and is looked at before its end.
TEST(BudgetKeeper, EstimatesByOneTimeOnCallsThatBeginAfterTheFirstLook) {
  ModelMachine machine;
  machine.silent_ns = 6 * kMs;
  machine.suspend_ns = 1 * kMs;
  machine.call_ns = 500;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.001, 1);
  EXPECT_EQ(machine.resumed, 0);
  EXPECT_GT(outcome.counted, 0.5);
  EXPECT_LT(outcome.counted, 1.1);
}

TEST(BudgetKeeper, CountsWhatAnOpenGateWouldHaveSeen) {
  ModelMachine machine;
  machine.hook_ns = 10;
  machine.action_ns = 1000;
  const Outcome outcome = run(machine, Hook::kTrampoline, 0.05);
  EXPECT_LT(outcome.slowdown, 0.06);
  EXPECT_NEAR(outcome.counted, 1, 0.0001);
  EXPECT_EQ(outcome.estimated, 0u);
  EXPECT_EQ(machine.resumed, 0);
}

TEST(BudgetKeeper, LeavesAloneWhatIsCheap) {
  ModelMachine machine;
  machine.call_ns = 100'000;
  const Outcome outcome = run(machine, Hook::kUserFunction, 0.05, 2);
  EXPECT_NEAR(outcome.counted, 1, 0.001);
  EXPECT_EQ(machine.word(kSkipped), 0u);
  EXPECT_EQ(machine.resumed, 0);
}

TEST(BudgetKeeper, DetachesRawTracepointsWhereReachingThemIsTooMuch) {
  ModelMachine machine;
  machine.hook_ns = 300;
  const Outcome outcome = run(machine, Hook::kRawTracepoint, 0.05);
  EXPECT_LT(outcome.slowdown, 0.06);
  EXPECT_NEAR(outcome.counted, 1, 0.03);
  EXPECT_GT(machine.resumed, 50);
}

TEST(BudgetKeeper, SaysWhatItCannotKeep) {
  ModelMachine machine;
  machine.hook_ns = 1000;
  const Outcome outcome = run(machine, Hook::kTracepoint, 0.05, 2);
  EXPECT_GT(outcome.unavoidable, 0.2);
}

}  // namespace
}  // namespace espy::runtime
