#include "serve/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "serve/cost.h"

namespace espy::serve {

namespace {

constexpr std::string_view kPrefix = "espy_";
constexpr size_t kMaxProbes = 1000;  // whose hits are shown

// Of the run itself, without the prefix.
constexpr std::string_view kOwnFamilies[] = {"build_info",
                                             "start_time_seconds",
                                             "cpu_seconds",
                                             "probes",
                                             "probe_hits",
                                             "lost",
                                             "omitted_series",
                                             "skipped_probes",
                                             "web_viewers",
                                             "web_viewers_dropped",
                                             "omitted_probes",
                                             "program_timed_runs",
                                             "program_timed_seconds",
                                             "program_hook_seconds",
                                             "program_cpu_ratio",
                                             "timing_seconds",
                                             "map_memory_bytes",
                                             "peak_memory_bytes",
                                             "seen_ratio"};

// The names that a family may give to its samples. Two families must share none.
std::vector<std::string> sample_names(const std::string& family) {
  std::vector<std::string> out = {family};
  for (const std::string_view suffix : {"_total", "_created", "_bucket", "_sum", "_count", "_info"})
    out.push_back(family + std::string(suffix));
  return out;
}

// Names families by their maps: @reads is espy_reads, @ is espy_map. A name that is taken gets a suffix.
class FamilyNames {
 public:
  FamilyNames() {
    for (const std::string_view own : kOwnFamilies) claim(std::string(kPrefix) + std::string(own));
  }

  std::string name_for(const DescribedMap& map) {
    std::string_view word = std::string_view(map.name).substr(1);
    // The suffix belongs to the samples.
    if (constexpr std::string_view kTotal = "_total"; word.ends_with(kTotal)) word.remove_suffix(kTotal.size());
    std::string name = std::string(kPrefix) + (word.empty() ? "map" : metric_name(word));
    while (!is_free(name)) name += "_map";
    claim(name);
    return name;
  }

 private:
  bool is_free(const std::string& family) const {
    return std::ranges::none_of(sample_names(family), [&](const std::string& name) { return taken_.contains(name); });
  }
  void claim(const std::string& family) {
    for (std::string& name : sample_names(family)) taken_.insert(std::move(name));
  }

  std::set<std::string> taken_;
};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Returns how many were left out.
size_t write_hits(const output::LossReport& losses, Exposition& out) {
  std::map<std::string, uint64_t> hits;  // two actions may have the same probe
  for (const output::ActionReport& action : losses.actions)
    for (const output::ProbeHits& probe : action.probes) hits[probe.name] += probe.hits;
  std::vector<std::pair<std::string, uint64_t>> rows(hits.begin(), hits.end());
  std::ranges::stable_sort(rows, std::ranges::greater(), &std::pair<std::string, uint64_t>::second);
  const size_t omitted = rows.size() - std::min(rows.size(), kMaxProbes);
  rows.resize(rows.size() - omitted);
  out.family("espy_probe_hits", MetricKind::kCounter, "How often a probe has fired.");
  for (const auto& [name, count] : rows) out.sample("_total", label("probe", name), count);
  return omitted;
}

}  // namespace

double cpu_seconds() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Metrics::Metrics(const std::vector<DescribedMap>& maps, const program::Program& program, std::string script,
                 output::TextStyle style, size_t max_samples)
    : program_(program),
      script_(std::move(script)),
      style_(std::move(style)),
      max_samples_(max_samples),
      started_at_(now_seconds()) {
  FamilyNames names;
  for (const DescribedMap& map : maps)
    if (metric_kind(map.value)) maps_.emplace_back(map, names.name_for(map));
}

std::string Metrics::text(runtime::LiveRun& run, const ServerCounts& counts, ExpositionFormat format) {
  Exposition out(format);
  write_maps(run, out);
  write_run(run.losses(), run.cost(), out);
  out.family("espy_web_viewers", MetricKind::kGauge, "How many pages show this run.");
  out.sample("", "", counts.viewers);
  out.family("espy_web_viewers_dropped", MetricKind::kCounter, "Pages that were dropped as they took no data.");
  out.sample("_total", "", counts.dropped_viewers);
  return out.finish();
}

void Metrics::write_maps(runtime::LiveRun& run, Exposition& out) {
  std::vector<std::pair<std::string, uint64_t>> omitted;
  std::vector<std::pair<std::string, double>> seen;
  for (MapMetrics& map : maps_) {
    const auto view = run.read_map(map.map().id);
    if (!view) continue;  // memory has run out; the others may need less
    const std::string labels = label("map", map.map().name);
    omitted.emplace_back(labels, map.write(*view, max_samples_, style_, out));
    seen.emplace_back(labels, view->seen_share);
  }
  out.family("espy_omitted_series", MetricKind::kGauge,
             "Keys of a map that are left out here, beyond max_metric_samples or without a number.");
  for (const auto& [labels, count] : omitted) out.sample("", labels, count);
  out.family("espy_seen_ratio", MetricKind::kGauge,
             "The share of the events that a map has seen: below 1 if a budget had probes off for a part of the time.");
  for (const auto& [labels, share] : seen) out.sample("", labels, fmt::format("{:.4g}", share));
}

void Metrics::write_run(const output::LossReport& losses, const runtime::RunCost& cost, Exposition& out) const {
  out.family("espy_build_info", MetricKind::kGauge, "The version of espy, and the script that it runs.");
  out.sample("", label("version", ESPY_VERSION) + "," + label("script", script_), 1);
  out.family("espy_start_time_seconds", MetricKind::kGauge, "When the run began, since the epoch.");
  out.sample("", "", fmt::format("{:.3f}", started_at_));
  out.family("espy_cpu_seconds", MetricKind::kCounter, "CPU time of the process espy, without its BPF programs.");
  out.sample("_total", "", fmt::format("{:.6f}", cpu_seconds()));
  out.family("espy_probes", MetricKind::kGauge, "How many probes the script has.");
  out.sample("", "", program_.probes.size() - losses.skipped_probes.size());
  out.family("espy_skipped_probes", MetricKind::kGauge, "Functions that a wildcard matches and that cannot be probed.");
  out.sample("", "", losses.skipped_probes.size());
  out.family(
      "espy_changed_files", MetricKind::kGauge,
      "Files with probes that were replaced or written to during the run: calls in the new ones are not counted.");
  out.sample("", "", losses.file_changes.size());
  out.family(
      "espy_incomplete", MetricKind::kGauge,
      "Other reasons why numbers are not exact: keys that were evicted, CPUs that were offline, a clock that was set.");
  out.sample("", "", losses.others.size());
  out.family("espy_uncertain_addresses", MetricKind::kGauge,
             "Addresses without names, because their process had code of several files there in turn.");
  out.sample("", "", losses.uncertain_addresses);
  const size_t omitted_probes = write_hits(losses, out), omitted_programs = write_cost(program_, cost, out);
  out.family("espy_omitted_probes", MetricKind::kGauge, "Probes and programs that are left out here.");
  out.sample("", "", omitted_probes + omitted_programs);
  out.family("espy_lost", MetricKind::kCounter,
             "What is missing or incomplete, by kind; all 0, espy_changed_files and espy_incomplete, too: every number "
             "is exact.");
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    out.sample("_total", label("kind", output::name_of(static_cast<program::LossKind>(kind)).key), losses.totals[kind]);
}

}  // namespace espy::serve
