#include "runtime/budget_keeper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "runtime/losses.h"

namespace espy::runtime {

namespace {

using program::Gates;

constexpr double kKept = 0.8;            // of what is known of earlier times on, at each
constexpr double kLeastOwnShare = 0.02;  // of the time on a CPU, that is not taken by the probes: less is not believed
constexpr double kMuch = 0.05;           // of the events: processes with more of them count for `cpu_share`

// The part of a time on a CPU in which a process was not in the probes.
double own_time_ns(double on_ns, double events, double event_ns) {
  return std::max(on_ns - events * event_ns, on_ns * kLeastOwnShare);
}

uint64_t difference(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

}  // namespace

std::map<uint32_t, uint64_t> Callers::events_by_process() const {
  std::map<uint32_t, uint64_t> out;
  if (table_ == 0) return out;
  const auto globals = machine_->memory(program_->globals);
  for (uint32_t i = 0; i < program_->cpu_count * Gates::kCallers; ++i) {
    const uint64_t at = table_ + uint64_t{i} * Gates::kCallerBytes;
    if (const auto pid = static_cast<uint32_t>(load_le(globals, at))) out[pid] += load_le(globals, at + 8);
  }
  return out;
}

void Callers::free_elements(uint32_t pid) {
  const auto globals = machine_->memory(program_->globals);
  for (uint32_t cpu = 0; cpu < program_->cpu_count; ++cpu) {
    const uint64_t at = table_ + uint64_t{cpu * Gates::kCallers + pid % Gates::kCallers} * Gates::kCallerBytes;
    if (load_le(globals, at) == pid) std::memset(globals.data() + at, 0, Gates::kCallerBytes);
  }
}

// What a process that has ended would have done, as others like it may have come after it. Other processes get its
// elements. Requires that the programs are off.
void Callers::forget_ended(double off_ns, double& events) {
  for (const auto& [pid, seen] : events_by_process()) {
    if (machine_->process_cpu_ns(pid)) continue;
    if (const auto known = callers_.find(pid); known != callers_.end()) {
      const Caller& caller = known->second;
      if (caller.own_ns > 0 && caller.off_share > 0)
        events += caller.off_share * off_ns * caller.events / caller.own_ns;
      else
        unknown_events_ += caller.last_events;
      callers_.erase(known);
    }
    free_elements(pid);
  }
}

void Callers::look() {
  for (const auto& [pid, events] : events_by_process()) {
    if (callers_.contains(pid)) continue;
    const auto cpu_ns = machine_->process_cpu_ns(pid);
    if (cpu_ns) callers_[pid] = {.cpu_ns = *cpu_ns, .events_seen = events};
  }
}

void Callers::end_time_on(uint32_t pid, Caller& caller, uint64_t events, double event_ns) {
  const auto cpu_ns = machine_->process_cpu_ns(pid);
  if (!cpu_ns) return;
  const auto on_ns = static_cast<double>(difference(caller.cpu_ns, *cpu_ns));
  const auto count = static_cast<double>(difference(caller.events_seen, events));
  caller.own_ns = caller.own_ns * kKept + own_time_ns(on_ns, count, event_ns);
  caller.events = caller.events * kKept + count;
  caller.cpu_ns = *cpu_ns;
  caller.events_seen = events;
}

void Callers::turned_off(double on_ns, double all_events, double event_ns) {
  all_events_ = all_events;
  unknown_events_ = 0;
  double in_table = 0;
  for (const auto& [pid, events] : events_by_process()) {
    const auto known = callers_.find(pid);
    const uint64_t before = known != callers_.end() ? known->second.events_seen : 0;
    const auto count = static_cast<double>(difference(before, events));
    in_table += count;
    if (known != callers_.end()) {
      known->second.last_events = count;
      end_time_on(pid, known->second, events, event_ns);
    } else if (const auto cpu_ns = machine_->process_cpu_ns(pid)) {
      const double on_cpu_ns = std::min(on_ns, static_cast<double>(*cpu_ns));
      const double own_ns = own_time_ns(on_cpu_ns, count, event_ns);
      callers_[pid] = {.cpu_ns = *cpu_ns,
                       .events_seen = events,
                       .last_events = count,
                       .first_rate = own_ns > 0 ? count / own_ns : 0};
    } else {
      unknown_events_ += count;
    }
  }
  unknown_events_ += std::max(all_events - in_table, 0.0);
}

// Since the time on. Nothing, if the rate is not known yet: then the CPU time is kept for later.
double Callers::events_of(Caller& caller, uint64_t cpu_ns, double off_ns) {
  const auto passed_ns = static_cast<double>(difference(caller.cpu_ns, cpu_ns));
  caller.cpu_ns = cpu_ns;
  caller.pending_ns += passed_ns;
  if (off_ns > 0)
    caller.off_share = caller.off_share > 0 ? (caller.off_share + passed_ns / off_ns) / 2 : passed_ns / off_ns;
  if (caller.own_ns <= 0) return 0;
  return std::exchange(caller.pending_ns, 0) * caller.events / caller.own_ns;
}

double Callers::turned_on(double off_ns, double traps_ns) {
  double events = 0, cpu_ns = 0;
  for (auto& [pid, caller] : callers_) {
    const auto now_ns = machine_->process_cpu_ns(pid);
    if (!now_ns) continue;
    const double before_ns = caller.pending_ns + static_cast<double>(difference(caller.cpu_ns, *now_ns));
    const double added = events_of(caller, *now_ns, off_ns);
    if (added > 0) cpu_ns += before_ns;
    events += added;
  }
  if (cpu_ns > 0) events *= std::max(1 - traps_ns / cpu_ns, 0.0);
  forget_ended(off_ns, events);
  return events;
}

double Callers::rest() const {
  double events = 0;
  for (const auto& [pid, caller] : callers_) events += caller.pending_ns * caller.first_rate;
  return events;
}

// Those with many events, at most a few: the kernel is asked for each thread of them.
std::vector<uint32_t> Callers::busiest() const {
  constexpr size_t kMost = 4;
  std::vector<std::pair<double, uint32_t>> by_events;
  double all = 0;
  for (const auto& [pid, caller] : callers_) {
    all += caller.events;
    by_events.emplace_back(caller.events, pid);
  }
  std::ranges::sort(by_events, std::greater());
  by_events.resize(std::min(by_events.size(), kMost));
  std::vector<uint32_t> out;
  for (const auto& [events, pid] : by_events)
    if (events > all * kMuch) out.push_back(pid);
  return out;
}

double Callers::cpu_share(uint64_t now_ns) {
  double run_ns = 0, wait_ns = 0;
  for (const uint32_t pid : busiest()) {
    const auto times = machine_->scheduling_times(pid);
    if (!times) continue;
    const auto before = std::exchange(callers_[pid].times, *times);
    if (before.run_ns == 0) continue;
    run_ns += static_cast<double>(difference(before.run_ns, times->run_ns));
    wait_ns += static_cast<double>(difference(before.wait_ns, times->wait_ns));
  }
  const auto passed_ns = static_cast<double>(now_ns - std::exchange(shared_at_ns_, now_ns));
  if (run_ns + wait_ns > 0) {
    run_ns_ = run_ns_ * kKept + run_ns;
    wait_ns_ = wait_ns_ * kKept + wait_ns;
    passed_ns_ = passed_ns_ * kKept + passed_ns;
  }
  if (run_ns_ <= 0) return 1;
  return std::min(std::max(run_ns_ / (run_ns_ + wait_ns_), run_ns_ / passed_ns_), 1.0);
}

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

// The most expensive programs get the same share of a CPU, the largest with which the sum is within the budget.
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
