#include "runtime/cost_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "runtime/cost_meter.h"
#include "runtime/losses.h"
#include "runtime/session_options.h"

namespace espy::runtime {

namespace {

constexpr uint64_t kWarningLookNs = 20 * kNsPerMs;
// Before the second and the third look: in the first one, what is traced may have had no CPU.
constexpr uint64_t kPausesNs[] = {200 * kNsPerMs, 1000 * kNsPerMs};
constexpr uint64_t kWatchLookNs = 5 * kNsPerMs;
constexpr uint64_t kBetweenLooksNs = 1000 * kNsPerMs;
constexpr int kNoLookMs = 1 << 30;

}  // namespace

// A run may cost more than its user expects if it has many probes, or one in a function of all processes.
bool CostWatch::may_be_dear() const {
  constexpr size_t kManyProbes = 100;
  const bool is_of_processes = !config_.tracee.processes.empty() || options_.tracee.child_pid != 0;
  return program_.probes.size() >= kManyProbes ||
         (!is_of_processes && std::ranges::any_of(program_.programs, [](const program::BpfProgram& each) {
           return each.hook == program::Hook::kUserFunction;
         }));
}

void CostWatch::start() {
  const uint64_t now_ns = machine_.now_ns();
  only_looks_ = !options_.cost.is_shown && options_.cost.budget_cpus == 0;
  is_served_ = std::ranges::any_of(options_.shown.servers, [](const RunServer* each) { return each->shows_cost(); });
  if (only_looks_ && !is_served_ && (!may_be_dear() || program_.own_times.switch_offset != 0)) return;
  const load::HookCosts& hooks = only_looks_ && !is_served_ ? std::as_const(assumed_) : options_.cost.hooks;
  meter_.emplace(machine_, program_, hooks);
  meter_->start(now_ns);
  reported_ = served_ = meter_->at_start();
  if (only_looks_) {
    meter_->let_caller_open();
    begin_warning_look(now_ns);
    return tick();
  }
  if (options_.cost.budget_cpus > 0) {
    keeper_.emplace(machine_, program_, *meter_, options_.cost.hooks, options_.cost.budget_cpus);
    keeper_->start(now_ns);
  }
  next_report_ns_ = now_ns + options_.cost.interval_ns;
  tick();
}

void CostWatch::tick() {
  if (!meter_) return;
  const uint64_t now_ns = machine_.now_ns();
  if (only_looks_) return tend_looks(now_ns);
  due_ms_ = meter_->tick(now_ns);
  if (keeper_) due_ms_ = std::min(due_ms_, keeper_->tick(now_ns));
  if (options_.cost.interval_ns == 0) return;
  if (now_ns >= next_report_ns_) {
    sink_.cost(meter_->report_since(reported_, now_ns));
    next_report_ns_ += (now_ns - next_report_ns_) / options_.cost.interval_ns * options_.cost.interval_ns;
    next_report_ns_ += options_.cost.interval_ns;
  }
  due_ms_ =
      std::min(due_ms_, static_cast<int>(std::min<uint64_t>((next_report_ns_ - now_ns) / kNsPerMs + 1, kNoLookMs)));
}

void CostWatch::begin_look(uint64_t now_ns, uint64_t ns) {
  meter_->open_window(now_ns);
  look_ends_ns_ = now_ns + ns;
}

void CostWatch::begin_warning_look(uint64_t now_ns) {
  next_look_ns_ = 0;
  is_warning_look_ = true;
  if (warning_looks_++ == 0) {
    looked_ = meter_->at_start();
  } else {
    meter_->report_since(looked_, now_ns);
  }
  begin_look(now_ns, kWarningLookNs);
}

void CostWatch::end_look(uint64_t now_ns) {
  look_ends_ns_ = 0;
  meter_->close_window(now_ns);
  if (!std::exchange(is_warning_look_, false)) return;
  const bool is_last = warns_if_dear(now_ns) || warning_looks_ > std::size(kPausesNs);
  if (!is_last) {
    next_look_ns_ = now_ns + kPausesNs[warning_looks_ - 1];
  } else if (!is_served_) {
    meter_.reset();
  }
}

void CostWatch::tend_looks(uint64_t now_ns) {
  if (look_ends_ns_ != 0 && now_ns >= look_ends_ns_) end_look(now_ns);
  if (look_ends_ns_ == 0 && next_look_ns_ != 0 && now_ns >= next_look_ns_) begin_warning_look(now_ns);
  const uint64_t due_ns = look_ends_ns_ != 0 ? look_ends_ns_ : next_look_ns_;
  due_ms_ = due_ns == 0 ? kNoLookMs : static_cast<int>((due_ns - now_ns) / kNsPerMs + 1);
}

bool CostWatch::warns_if_dear(uint64_t now_ns) {
  const double cpus = may_be_dear() ? meter_->report_since(looked_, now_ns).cpus() : 0;
  if (cpus <= kDearCpus) return false;
  sink_.message("runtime_error",
                fmt::format("the probes take about {} of a CPU (--cost shows which probes, --budget=5% limits them)",
                            output::percent_text(cpus)),
                "", 0, 0, 0);
  return true;
}

const RunCost& CostWatch::look() {
  if (!meter_) return cost_;
  if (is_stopped_) {
    cost_.whole = meter_->report();
    return cost_;
  }
  const uint64_t now_ns = machine_.now_ns();
  if (!cost_.whole.programs.empty() && now_ns - served_.at_ns < kBetweenLooksNs) return cost_;
  CostMeter::Counts start = meter_->at_start();
  cost_.whole = meter_->report_since(start, now_ns);
  cost_.lately = meter_->report_since(served_, now_ns);
  if (only_looks_ && look_ends_ns_ == 0) begin_look(now_ns, kWatchLookNs);
  return cost_;
}

int CostWatch::shorter(int timeout_ms) const {
  if (!meter_) return timeout_ms;
  return timeout_ms < 0 ? due_ms_ : std::min(timeout_ms, due_ms_);
}

void CostWatch::stop() {
  if (keeper_) keeper_->stop(machine_.now_ns());
  if (keeper_ && !keeper_->status())
    sink_.message(
        "runtime_error",
        fmt::format("probes that were off could not be attached again: {}", keeper_->status().error().message), "", 0,
        0, 0);
  if (meter_) meter_->stop(machine_.now_ns());
  is_stopped_ = true;
}

void CostWatch::report() {
  if (meter_ && options_.cost.is_shown) sink_.cost(meter_->report());
}

SkippedEvents CostWatch::skipped(program::ProgramId id) const {
  return keeper_ ? keeper_->skipped(id) : SkippedEvents();
}

double CostWatch::seen_share(program::ScriptMapId map) const {
  if (!keeper_) return 1;
  const auto globals = machine_.memory(program_.globals);
  uint64_t seen = 0, skipped = 0;
  const auto& writers = program_.script_maps[map].writers;
  for (const program::ProgramId id : std::set(writers.begin(), writers.end())) {
    const uint64_t missing = keeper_->skipped(id).sum();
    skipped += missing;
    for (uint32_t cpu = 0; missing > 0 && cpu < program_.cpu_count; ++cpu)
      seen += count_on_cpu(globals, program_, program_.hits, id, cpu);
  }
  return skipped == 0 ? 1 : static_cast<double>(seen) / static_cast<double>(seen + skipped);
}

}  // namespace espy::runtime
