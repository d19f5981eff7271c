#include "output/cost_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace espy::output {

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
  return fmt::format("{:.{}f} %", percent, percent >= 10 ? 0 : percent >= 1 ? 1 : 2);
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
