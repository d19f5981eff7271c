#include "runtime/callers.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/byte_reader.h"

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

}  // namespace espy::runtime
