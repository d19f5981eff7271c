#include "runtime/budget_keeper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "runtime/hits.h"

namespace espy::runtime {

namespace {

using program::Gates;
using program::Hook;
using program::ProbeId;
using program::ProgramId;

constexpr uint64_t kFirstPeriodNs = 20 * kNsPerMs;  // the first window of the meter
constexpr uint64_t kFirstLookNs = 4 * kNsPerMs;     // at who calls
constexpr uint64_t kBudgetPeriodNs = 100 * kNsPerMs;
constexpr double kLeastOnNs = 1e6;        // a time on, of programs with a gate
constexpr double kLeastAttachedNs = 2e6;  // ... and of those that are attached for it
constexpr double kMostCredit = 2e8;       // ns on for which CPU time may be left over
constexpr double kMostDebt = 1e9;         // ... or be missing
// Of the cost that is expected, at each time on that costs less: a thread that waits for a CPU then will get it again.
constexpr double kKeptCost = 0.9;
constexpr uint64_t kLeastLearnedNs = kNsPerMs / 2;
constexpr uint64_t kWindowEvery = 10;      // periods
constexpr double kEnoughEvents = 100;      // of windows, to tell what an event costs
constexpr double kGateNs = 4;              // of a program that finds its gate closed
constexpr double kLeastBudgetShare = 0.1;  // of the time on, that is not taken by the probes: less is not believed

bool detaches_always(Hook hook) { return hook == Hook::kUserFunction || hook == Hook::kKernelFunction; }
bool may_detach(Hook hook) { return hook == Hook::kRawTracepoint || hook == Hook::kSystemCalls; }
bool has_returns(Hook hook) { return detaches_always(hook) || hook == Hook::kTrampoline || hook == Hook::kSystemCalls; }

std::vector<uint64_t> difference(std::vector<uint64_t> now, const std::vector<uint64_t>& before) {
  for (size_t i = 0; i < now.size(); ++i) now[i] -= before[i];
  return now;
}

double sum(const std::vector<uint64_t>& events) {
  return static_cast<double>(std::accumulate(events.begin(), events.end(), uint64_t{0}));
}

}  // namespace

BudgetKeeper::BudgetKeeper(load::Machine& machine, const program::Program& program, CostMeter& meter,
                           const load::HookCosts& hooks, double budget_cpus)
    : machine_(machine), program_(program), meter_(meter), hooks_(hooks), budget_cpus_(budget_cpus) {
  estimated_.resize(program.programs.size());
  add_groups();
}

// Entries and returns have the same kind of hook.
void BudgetKeeper::add_groups() {
  std::map<Hook, size_t> by_hook;
  for (const ProgramId id : program_.programs.ids()) {
    if (!program_.gates.has_gate(id)) continue;
    const Hook hook = program_.programs[id].hook;
    const auto known = by_hook.find(hook);
    if (has_returns(hook) && known != by_hook.end()) {
      groups_[known->second].programs.push_back(id);
      continue;
    }
    by_hook[hook] = groups_.size();
    groups_.push_back({.programs = {id},
                       .callers = Callers(machine_, program_, program_.gates.caller_table(id)),
                       .detaches = detaches_always(hook)});
  }
  for (Group& group : groups_)
    std::ranges::stable_sort(group.programs, {}, [&](ProgramId id) { return program_.programs[id].sees_returns; });
}

std::vector<uint64_t> BudgetKeeper::hits_of(const Group& group) const {
  std::vector<uint64_t> out;
  const auto globals = machine_.memory(program_.globals);
  for (const ProgramId id : group.programs)
    for (uint32_t cpu = 0; cpu < program_.cpu_count; ++cpu)
      out.push_back(count_on_cpu(globals, program_, program_.hits, id, cpu));
  return out;
}

void BudgetKeeper::start(uint64_t now_ns) {
  period_begin_ns_ = now_ns;
  next_period_ns_ = now_ns + kFirstPeriodNs;
  for (Group& group : groups_) {
    begin_slice(group, now_ns);
    group.off_at_ns = UINT64_MAX;
  }
}

void BudgetKeeper::begin_slice(Group& group, uint64_t now_ns) const {
  group.switched_ns = group.turned_on_ns = now_ns;
  group.hits_at_on = group.hits_at_turn_on = hits_of(group);
}

void BudgetKeeper::end_slice(Group& group, uint64_t now_ns) const {
  group.slice_events = difference(hits_of(group), group.hits_at_turn_on);
  group.slice_ns = now_ns - group.turned_on_ns;
}

int BudgetKeeper::tick(uint64_t now_ns) {
  for (Group& group : groups_)
    if (group.is_on && now_ns >= group.off_at_ns) turn_off(group, now_ns);
  uint64_t next_ns = next_period_ns_;
  if (periods_ == 0 && now_ns < next_period_ns_) {
    next_ns = std::min(next_ns, std::max(now_ns + 1, period_begin_ns_ + kFirstLookNs));
    if (now_ns >= period_begin_ns_ + kFirstLookNs) {
      for (Group& group : groups_) {
        group.callers.look();
        look_at_callers(group, now_ns);
      }
      next_ns = next_period_ns_;
    }
  }
  if (now_ns >= next_period_ns_) {
    begin_period(machine_.now_ns());
    next_ns = next_period_ns_;
  }
  for (const Group& group : groups_)
    if (group.is_on) next_ns = std::min(next_ns, group.off_at_ns);
  const uint64_t later_ns = machine_.now_ns();
  return next_ns <= later_ns ? 0 : static_cast<int>((next_ns - later_ns + kNsPerMs / 2) / kNsPerMs);
}

void BudgetKeeper::begin_period(uint64_t now_ns) {
  if (periods_ == 0) meter_.close_window(now_ns);
  for (Group& group : groups_) {
    measure(group, now_ns);
    look_at_callers(group, now_ns);
  }
  share_budget();
  const auto period_ns = static_cast<double>(now_ns - period_begin_ns_);
  bool slices_any = false, opens_window = false;
  for (Group& group : groups_) {
    const bool begins = !group.is_sliced && group.allowed_cpus < group.on_cpus;
    // What was taken before anything was known has to be made up for.
    if (begins) group.credit_ns = -group.on_cpus * period_ns;
    group.is_sliced |= begins;
    if (!group.is_sliced) continue;
    slices_any = true;
    group.credit_ns = std::clamp(group.credit_ns + group.allowed_cpus * period_ns, -kMostDebt * group.on_cpus,
                                 kMostCredit * group.on_cpus);
    if (!is_due(group) && group.is_on) turn_off(group, now_ns);
    opens_window |= is_due(group) && periods_ % kWindowEvery == 0;
  }
  if (slices_any) {
    meter_.let_caller_open();
    meter_.close_window(now_ns);
    next_slice();
    if (opens_window) meter_.open_window(now_ns);
  }
  for (Group& group : groups_)
    if (group.is_sliced && is_due(group)) turn_on(group);
  ++periods_;
  period_begin_ns_ = now_ns;
  next_period_ns_ = std::max(now_ns, next_period_ns_) + kBudgetPeriodNs;
}

// More often at first, while their share is not known.
void BudgetKeeper::look_at_callers(Group& group, uint64_t now_ns) const {
  constexpr uint64_t kFirst = 10, kEvery = 5;
  if (periods_ == 0 || (group.is_sliced && (periods_ < kFirst || periods_ % kEvery == 0)))
    group.cpu_share = group.callers.cpu_share(now_ns);
}

double BudgetKeeper::least_on_ns(const Group& group) {
  return group.detaches ? std::max(kLeastAttachedNs, group.detach_ns) : kLeastOnNs;
}

bool BudgetKeeper::is_due(const Group& group) const {
  return group.allowed_cpus >= group.on_cpus || group.credit_ns >= group.on_cpus * least_on_ns(group);
}

double BudgetKeeper::event_ns(ProgramId id) const {
  const CostMeter::Recent& recent = meter_.recent(id);
  const double hook_ns = hooks_.of(program_, id).value_or(0);
  return recent.runs > 0 ? recent.ns / recent.runs + hook_ns : hook_ns;
}

// The runs in the last time on of the program at this place of the group.
double BudgetKeeper::runs_of(const Group& group, size_t place) const {
  const CostMeter::Recent& recent = meter_.recent(group.programs[place]);
  double events = 0;
  for (size_t i = place * program_.cpu_count; i < (place + 1) * program_.cpu_count; ++i)
    events += static_cast<double>(group.events[i]);
  if (recent.events >= kEnoughEvents) return events * recent.runs / recent.events;
  const double of_window = recent.window_ns > 0 ? recent.runs * static_cast<double>(group.on_ns) / recent.window_ns : 0;
  return std::max(events, of_window);
}

// Of the last time on.
double BudgetKeeper::probes_ns_of(const Group& group) const {
  double ns = 0;
  for (size_t i = 0; i < group.programs.size(); ++i) ns += runs_of(group, i) * event_ns(group.programs[i]);
  return ns;
}

double BudgetKeeper::cpus_of(const Group& group) const {
  return probes_ns_of(group) / static_cast<double>(group.on_ns);
}

double BudgetKeeper::ns_per_event(const Group& group) const {
  const double events = sum(group.events);
  return events > 0 ? probes_ns_of(group) / events : 0;
}

double BudgetKeeper::off_cpus_of(const Group& group) const {
  double ns = 0;
  for (size_t i = 0; i < group.programs.size(); ++i)
    ns += runs_of(group, i) * (hooks_.of(program_, group.programs[i]).value_or(0) + kGateNs);
  return ns / static_cast<double>(group.on_ns);
}

// By the events of the last time on: of the whole period for programs that were on.
void BudgetKeeper::measure(Group& group, uint64_t now_ns) {
  if (group.is_on) end_time_on(group, now_ns);
  if (group.on_ns == 0) return;
  const double cpus = group.is_measured ? 0 : cpus_of(group);
  take_from_credit(group, cpus);
  if (group.is_measured) return;
  group.on_cpus = group.is_sliced ? std::max(cpus, group.on_cpus * kKeptCost + cpus * (1 - kKeptCost)) : cpus;
  group.off_cpus = std::min(off_cpus_of(group), group.on_cpus);
  group.is_measured = true;
  choose_detaching(group);
}

// Nothing is learned from a time that is too short; it counts as a part of what comes after it.
void BudgetKeeper::end_time_on(Group& group, uint64_t now_ns) const {
  if (now_ns - group.switched_ns < kLeastLearnedNs) return;
  const std::vector<uint64_t> hits = hits_of(group);
  group.events = difference(hits, group.hits_at_on);
  constexpr double kKept = 0.8;
  group.mix.resize(group.programs.size());
  for (double& each : group.mix) each *= kKept;
  for (size_t i = 0; i < hits.size(); ++i) group.mix[i / program_.cpu_count] += static_cast<double>(group.events[i]);
  group.hits_at_on = hits;
  group.on_ns = now_ns - group.switched_ns;
  group.switched_ns = now_ns;
  group.is_measured = false;
}

// Detaching takes a while, in which the program is still reached.
void BudgetKeeper::take_from_credit(Group& group, double cpus) {
  group.credit_ns -= cpus * static_cast<double>(group.on_ns);
  if (!group.detaches) return;
  const uint64_t skipped = skipped_by(group);
  group.credit_ns -= static_cast<double>(skipped - group.skipped_seen) * off_event_ns(group);
  group.skipped_seen = skipped;
}

uint64_t BudgetKeeper::skipped_by(const Group& group) const {
  uint64_t all = 0;
  const auto globals = machine_.memory(program_.globals);
  for (const ProgramId id : group.programs)
    for (uint32_t cpu = 0; cpu < program_.cpu_count; ++cpu)
      all += count_on_cpu(globals, program_, program_.gates.skipped, id, cpu);
  return all;
}

// What an event takes whose gate is closed.
double BudgetKeeper::off_event_ns(const Group& group) const {
  double hook_ns = 0;
  for (const ProgramId id : group.programs) hook_ns = std::max(hook_ns, hooks_.of(program_, id).value_or(0));
  return hook_ns + kGateNs;
}

// A program whose gate is closed still has to be reached. Where that takes much of the budget, it is detached.
void BudgetKeeper::choose_detaching(Group& group) const {
  constexpr double kMuch = 0.2;
  const Hook hook = program_.programs[group.programs.front()].hook;
  if (may_detach(hook) && group.off_cpus > kMuch * budget_cpus_) group.detaches = true;
}

// The dearest get the same share of a CPU, the largest with which the sum is within the budget.
void BudgetKeeper::share_budget() {
  double left = budget_cpus_;
  unavoidable_cpus_ = 0;
  std::vector<std::pair<double, Group*>> by_cost;
  for (Group& group : groups_) {
    const double fixed = group.detaches ? 0 : group.off_cpus;
    unavoidable_cpus_ += fixed;
    by_cost.emplace_back(group.on_cpus - fixed, &group);
  }
  if (unavoidable_cpus_ <= budget_cpus_) {
    left -= unavoidable_cpus_;
    unavoidable_cpus_ = 0;
  } else {
    left = 0;
  }
  std::ranges::sort(by_cost, {}, &std::pair<double, Group*>::first);
  for (size_t i = 0; i < by_cost.size(); ++i) {
    const auto& [cost, group] = by_cost[i];
    const double fair = left / static_cast<double>(by_cost.size() - i) * group->cpu_share;
    group->allowed_cpus = std::min(cost, fair) + group->on_cpus - cost;
    left -= std::min(cost, fair);
  }
}

void BudgetKeeper::set_gates(const Group& group, uint64_t state) {
  const auto globals = machine_.memory(program_.globals);
  for (const ProgramId id : group.programs)
    std::memcpy(globals.data() + program_.gates.offset_bytes + id.index * 8, &state, sizeof(state));
}

// Calls that began in another slice are not seen to return.
void BudgetKeeper::next_slice() {
  const auto globals = machine_.memory(program_.globals);
  const uint64_t next = (load_le(globals, program_.gates.slice_offset) + 1) & UINT32_MAX;
  std::memcpy(globals.data() + program_.gates.slice_offset, &next, sizeof(next));
}

// Attaches the programs of a group again: all of them, or none.
bool BudgetKeeper::resume(const Group& group) {
  for (const ProgramId id : group.programs) {
    Status done = machine_.resume(id);
    if (done) continue;
    for (const ProgramId each : group.programs) static_cast<void>(machine_.suspend(each));
    if (done.error().code != ECANCELED) status_ = std::move(done);  // not if the run ends
    return false;
  }
  return true;
}

void BudgetKeeper::turn_on(Group& group) {
  if (!group.is_on) {
    const bool is_gone = std::ranges::all_of(group.programs, [&](ProgramId id) { return machine_.is_suspended(id); });
    if (group.detaches && !is_gone) return;  // in the next period
    if (group.detaches && !resume(group)) return;
    const uint64_t now_ns = machine_.now_ns();  // attaching takes milliseconds
    estimate(group, now_ns - group.switched_ns);
    begin_slice(group, now_ns);
    set_gates(group, Gates::kOpen);
    group.is_on = true;
  }
  const bool is_free = group.allowed_cpus >= group.on_cpus;
  const double on_ns = std::min(group.credit_ns / std::max(group.on_cpus, 1e-9), static_cast<double>(kBudgetPeriodNs));
  group.off_at_ns =
      is_free ? UINT64_MAX : machine_.now_ns() + static_cast<uint64_t>(std::max(on_ns - group.detach_ns, 0.0));
}

void BudgetKeeper::turn_off(Group& group, uint64_t now_ns) {
  meter_.close_window(now_ns);
  // The events that come while it waits are seen. Returns go first, so that none is seen without its entry.
  for (auto id = group.programs.rbegin(); id != group.programs.rend(); ++id)
    if (group.detaches && !machine_.suspend(*id)) group.detaches = false;
  set_gates(group, Gates::kClosed);
  const uint64_t off_ns = machine_.now_ns();
  group.detach_ns = (group.detach_ns + static_cast<double>(off_ns - now_ns)) / 2;
  end_time_on(group, off_ns);
  end_slice(group, off_ns);
  group.callers.turned_off(static_cast<double>(group.slice_ns), sum(group.slice_events), ns_per_event(group));
  group.skipped_at_off = skipped_by(group);
  group.switched_ns = off_ns;
  group.is_on = false;
}

// Adds the events of a time off.
void BudgetKeeper::estimate(Group& group, uint64_t off_ns) {
  const uint64_t counted = skipped_by(group) - group.skipped_at_off;
  const double traps_ns = static_cast<double>(counted) * off_event_ns(group);
  const double known = group.callers.turned_on(static_cast<double>(off_ns), traps_ns);
  if (!group.detaches || group.slice_ns == 0) return;
  add_by_mix(group, known);
  estimate_unknown(group, off_ns);
}

// Of several programs, each gets the part of the events that it had lately.
void BudgetKeeper::add_by_mix(const Group& group, double events) {
  const double all = std::accumulate(group.mix.begin(), group.mix.end(), 0.0);
  for (size_t i = 0; all > 0 && i < group.programs.size(); ++i)
    estimated_[group.programs[i].index] += events * group.mix[i] / all;
}

// Of processes of which only the events are known: by their rate while the programs were on, as far as the CPU was not
// in the probes.
void BudgetKeeper::estimate_unknown(const Group& group, uint64_t off_ns) {
  const auto on_ns = static_cast<double>(group.slice_ns);
  for (uint32_t cpu = 0; cpu < program_.cpu_count; ++cpu) {
    const auto events_at = [&](size_t i) {
      const size_t at = i * program_.cpu_count + cpu;
      return static_cast<double>(group.slice_events[at]);
    };
    double probes_ns = 0;
    for (size_t i = 0; i < group.programs.size(); ++i) probes_ns += events_at(i) * event_ns(group.programs[i]);
    const double own_ns = std::max(on_ns - probes_ns, on_ns * kLeastBudgetShare);
    for (size_t i = 0; i < group.programs.size(); ++i)
      estimated_[group.programs[i].index] +=
          events_at(i) * group.callers.unknown_share() * static_cast<double>(off_ns) / own_ns;
  }
}

void BudgetKeeper::stop(uint64_t now_ns) {
  for (Group& group : groups_) {
    if (!group.is_on) estimate(group, now_ns - group.switched_ns);
    if (group.detaches) add_by_mix(group, group.callers.rest());
  }
}

SkippedEvents BudgetKeeper::skipped(ProgramId id) const {
  SkippedEvents out;
  const auto globals = machine_.memory(program_.globals);
  for (uint32_t cpu = 0; cpu < program_.cpu_count; ++cpu)
    out.counted += count_on_cpu(globals, program_, program_.gates.skipped, id, cpu);
  // Between closing the gate and detaching, events are counted that the estimate has as well.
  out.estimated = static_cast<uint64_t>(std::llround(estimated_[id.index]));
  if (out.estimated > 0) out.estimated -= std::min(out.estimated, out.counted);
  return out;
}

}  // namespace espy::runtime
