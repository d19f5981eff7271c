#include "output/loss_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/strings.h"

namespace espy::output {

namespace {

using program::LossKind;

constexpr LossName kLossNames[] = {
    {"missed", "missed", "event(s) missed"},
    {"over budget", "over_budget", "event(s) skipped while probes were off to keep the budget"},
    {"lost records", "lost_records", "record(s) lost"},
    {"lost updates", "lost_updates", "update(s) of full or busy maps lost"},
    {"lost stacks", "lost_stacks", "stack(s) lost"},
    {"uncertain stacks", "uncertain_stacks", "stack(s) may be wrong, unwound by frame pointers"},
    {"truncated strings", "truncated_strings", "string(s) truncated"},
    {"read errors", "read_errors", "memory read(s) failed"},
    {"stopped loops", "stopped_loops", "loop(s) stopped at the kernel's iteration limit"},
    {"bad values", "bad_values", "value(s) out of range: divisions by zero, array indexes, sums beyond 64 bits"},
};
static_assert(std::size(kLossNames) == kLossKinds);

constexpr LossKind kind_at(size_t index) { return static_cast<LossKind>(index); }

// By descending hits.
std::vector<ProbeHits> by_hits(std::vector<ProbeHits> probes) {
  std::ranges::stable_sort(probes, std::ranges::greater(), &ProbeHits::hits);
  return probes;
}

// The kinds of loss that have a column: kMissed, and those that occurred.
std::vector<size_t> shown_kinds(const LossReport& loss_report) {
  std::vector<size_t> out;
  for (size_t i = 0; i < kLossKinds; ++i)
    if (kind_at(i) == LossKind::kMissed || loss_report.totals[i] > 0) out.push_back(i);
  return out;
}

class LossTable {
 public:
  explicit LossTable(const LossReport& loss_report) : kinds_(shown_kinds(loss_report)) {
    for (const ActionReport& action : loss_report.actions)
      for (const ProbeHits& probe : action.probes) width_ = std::max(width_, probe.name.size() + 2);
    width_ = std::min(width_, kMaxWidth);
  }

  std::string head() const {
    std::string out = fmt::format("{:<{}}{:>12}", "probe", width_, "fired");
    for (const size_t kind : kinds_) out += fmt::format("{:>18}", kLossNames[kind].column);
    return out + "\n";
  }

  std::string action(const ActionReport& report) const {
    std::string out;
    const bool is_one = report.probes.size() == 1;
    out += row(is_one ? report.probes[0].name : fmt::format("{} probes of one program", report.probes.size()),
               report.hits());
    for (const size_t kind : kinds_) {
      const bool is_known = kind_at(kind) != LossKind::kMissed || report.is_missed_known;
      const bool is_estimated = kind_at(kind) == LossKind::kSlice && report.is_slice_estimated;
      const std::string number = (is_estimated ? "~" : "") + std::to_string(report.losses[kind]);
      out += fmt::format("{:>18}", is_known ? number : "?");
    }
    out += "\n";
    if (is_one) return out;
    size_t silent = 0;
    for (const ProbeHits& probe : by_hits(report.probes)) {
      if (probe.hits == 0)
        ++silent;
      else
        out += row("  " + probe.name, probe.hits) + "\n";
    }
    if (silent > 0) out += row(fmt::format("  {} others", silent), 0) + "\n";
    return out;
  }

 private:
  static constexpr size_t kMaxWidth = 60;
  std::string row(const std::string& name, uint64_t hits) const {
    return fmt::format("{:<{}}{:>12}", printable_line(name), width_, hits);
  }

  std::vector<size_t> kinds_;
  size_t width_ = 24;
};

}  // namespace

std::string counted(uint64_t count, std::string_view text) {
  std::string out = fmt::format("{} {}", count, text);
  for (const std::string_view ending : {"(s)", "(es)"})
    for (size_t at = out.find(ending); at != out.npos; at = out.find(ending, at))
      out.replace(at, ending.size(), count == 1 ? "" : ending.substr(1, ending.size() - 2));
  return out;
}

const LossName& name_of(LossKind kind) { return kLossNames[static_cast<size_t>(kind)]; }

uint64_t ActionReport::hits() const {
  return std::accumulate(probes.begin(), probes.end(), uint64_t{0},
                         [](uint64_t sum, const ProbeHits& probe) { return sum + probe.hits; });
}

uint64_t in_progress(const TreeCounts& trees) {
  const uint64_t over = trees.shown + trees.dropped + trees.left;
  return trees.begun - std::min(trees.begun, over);
}

std::string LossReport::inexact() const {
  for (size_t i = 0; i < kLossKinds; ++i) {
    if (totals[i] == 0) continue;
    const auto worst =
        std::ranges::max_element(actions, {}, [i](const ActionReport& action) { return action.losses[i]; });
    const bool has_place = worst != actions.end() && worst->losses[i] > 0 && !worst->probes.empty();
    return fmt::format("{}{}", counted(totals[i], kLossNames[i].sentence),
                       has_place ? fmt::format(", {} by {}", worst->losses[i], worst->probes.front().name) : "");
  }
  const std::vector<std::string> reasons = reasons_beside_records();
  return reasons.empty() ? "" : reasons.front();
}

std::vector<std::string> LossReport::reasons_beside_records() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < kLossKinds; ++i)
    if (totals[i] > 0 && kind_at(i) != LossKind::kRecord) out.push_back(counted(totals[i], kLossNames[i].sentence));
  for (const auto* sentences : {&gaps, &file_changes, &others}) std::ranges::copy(*sentences, std::back_inserter(out));
  if (uncertain_addresses > 0) out.push_back(uncertain_sentence());
  if (!skipped_probes.empty())
    out.push_back(counted(
        skipped_probes.size(),
        fmt::format("matching place(s) skipped, which cannot be probed, such as {}", skipped_probes.front().name)));
  return out;
}

std::string LossReport::uncertain_sentence() const {
  return counted(uncertain_addresses, "address(es) without a name: the process had code from several files there");
}

std::string LossReport::unknown() const {
  std::string first;
  size_t count = 0;
  for (const ActionReport& action : actions) {
    if (action.is_missed_known) continue;
    for (const ProbeHits& probe : action.probes) {
      if (probe.name.starts_with("profile:") || probe.name.starts_with("interval:")) continue;
      if (++count == 1) first = probe.name;
    }
  }
  if (count == 0) return "";
  return fmt::format("cannot know whether the output is exact: the kernel does not count skipped events of {}{}", first,
                     count == 1 ? "" : fmt::format(" and {} more", count - 1));
}

std::string to_text(const LossReport& loss_report) {
  if (loss_report.actions.empty()) return "";
  const LossTable table(loss_report);
  std::string out = table.head();
  for (const ActionReport& action : loss_report.actions) out += table.action(action);
  if (const auto& trees = loss_report.trees)
    out += fmt::format("trees: {} begun, {} shown, {} dropped, {} left without a return, {} in progress\n",
                       trees->begun, trees->shown, trees->dropped, trees->left, in_progress(*trees));
  for (const SkippedProbe& each : loss_report.skipped_probes)
    out += fmt::format("skipped: {} ({})\n", each.name, each.reason);
  for (const std::string& gap : loss_report.gaps) out += "recording: " + gap + "\n";
  for (const std::string& change : loss_report.file_changes) out += printable_line(change) + "\n";
  for (const std::string& other : loss_report.others) out += other + "\n";
  return out;
}

namespace {

std::string number_text(double number) { return fmt::format("{:.{}f}", number, number < 10 ? 1 : 0); }

std::string number_text(const std::optional<double>& number) { return number ? number_text(*number) : "-"; }

class Table {
 public:
  explicit Table(const CostReport& report) : seconds_(report.seconds) {
    for (const ProgramCost& program : report.programs)
      for (const ProbeHits& probe : program.probes) width_ = std::max(width_, probe.name.size() + 2);
    width_ = std::min(width_, kMaxWidth);
  }

  std::string head() const {
    return row("cost of probe", "events/s") + cells("runs/s", "ns/run", "hook ns", "CPU", "maps");
  }

  std::string program(const ProgramCost& cost) const {
    const bool is_one = cost.probes.size() == 1;
    std::string out = row(is_one ? cost.probes[0].name : fmt::format("{} probes of one program", cost.probes.size()),
                          number_text(cost.events)) +
                      cells(number_text(cost.runs), number_text(cost.ns_per_run), number_text(cost.hook_ns),
                            percent_text(cost.cpus), bytes_text(cost.map_bytes));
    if (is_one) return out;
    std::vector<ProbeHits> probes = cost.probes;
    std::ranges::stable_sort(probes, std::ranges::greater(), &ProbeHits::hits);
    const auto silent = std::ranges::count(probes, uint64_t{0}, &ProbeHits::hits);
    for (const ProbeHits& probe : probes)
      if (probe.hits > 0) out += row("  " + probe.name, number_text(static_cast<double>(probe.hits) / seconds_)) + "\n";
    if (silent > 0) out += row(fmt::format("  {} others", silent), "0.0") + "\n";
    return out;
  }

  std::string total(const CostReport& report) const {
    return row("all", "") + cells("", "", "", percent_text(report.cpus()), bytes_text(report.map_bytes));
  }

 private:
  static constexpr size_t kMaxWidth = 60;
  std::string row(const std::string& name, const std::string& events) const {
    return fmt::format("{:<{}}{:>12}", name, width_, events);
  }
  static std::string cells(const std::string& runs, const std::string& ns, const std::string& hook,
                           const std::string& cpus, const std::string& maps) {
    return fmt::format("{:>12}{:>10}{:>10}{:>10}{:>12}\n", runs, ns, hook, cpus, maps);
  }

  double seconds_;
  size_t width_ = 24;
};

std::string measuring_text(const CostMeasuring& measuring, double seconds) {
  const double share = seconds > 0 ? measuring.seconds / seconds : 0;
  std::string out =
      fmt::format("timed in {} window{}, {} of {:.1f} s, by {}", measuring.windows, measuring.windows == 1 ? "" : "s",
                  percent_text(share), seconds, measuring.is_by_kernel ? "the kernel" : "the programs' own clocks");
  if (measuring.ns_per_run > 0)
    out += fmt::format("; {:.0f} ns of ns/run are the timing, which took {} of a CPU", measuring.ns_per_run,
                       percent_text(measuring.cpus));
  return out + "\n";
}

}  // namespace

double CostReport::cpus() const {
  return std::accumulate(programs.begin(), programs.end(), 0.0,
                         [](double sum, const ProgramCost& program) { return sum + program.cpus; });
}

std::string percent_text(double share) {
  const double percent = share * 100;
  return fmt::format("{:.{}f}%", percent, percent >= 10 ? 0 : percent >= 1 ? 1 : 2);
}

std::string bytes_text(uint64_t bytes) {
  constexpr uint64_t kKibibyte = 1024, kMebibyte = 1024 * kKibibyte;
  if (bytes >= 10 * kMebibyte) return fmt::format("{} MiB", bytes / kMebibyte);
  return fmt::format("{} KiB", (bytes + kKibibyte - 1) / kKibibyte);
}

std::string to_text(const CostReport& report) {
  if (report.programs.empty()) return "";
  const Table table(report);
  std::string out = table.head();
  for (const ProgramCost& program : report.programs) out += table.program(program);
  if (report.programs.size() > 1) out += table.total(report);
  out +=
      fmt::format("espy itself: {} of a CPU, {}\n", percent_text(report.tracer_cpus), bytes_text(report.tracer_bytes));
  return out + measuring_text(report.measuring, report.seconds);
}

}  // namespace espy::output
