#include "serve/metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/strings.h"
#include "output/json.h"
#include "output/quantity.h"
#include "program/layout.h"

namespace espy::serve {

namespace {

// ---- The text

constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram", "summary"};  // by MetricKind

// ---- Bounds of histograms

constexpr size_t kMostBounds = 128;  // of a map; a hist() of one bit has 127, that of negative values among them
constexpr uint8_t kMostBits = 1;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The buckets with the bounds of a hist() of at most one bit: each bound of fewer bits is one of more. Unsigned values
// from 2^63 on are above all bounds.
std::vector<size_t> hist_bounds(uint8_t bits, bool has_negative) {
  const uint8_t shown_bits = std::min(bits, kMostBits);
  std::vector<size_t> out;
  if (has_negative) out.push_back(0);
  for (uint32_t i = 1; i + 1 < program::hist_bucket_count(shown_bits); ++i) {
    const uint64_t last = program::hist_bucket_start(i + 1, shown_bits) - 1;
    if (last > INT64_MAX) break;
    out.push_back(program::hist_bucket(static_cast<int64_t>(last), bits));
  }
  return out;
}

// Each n-th of `count` buckets but the last, so that they are not too many; the first, which is below the range, and
// the one before the last, where the range ends, among them.
std::vector<size_t> lhist_bounds(size_t count) {
  const size_t steps = count - 2;
  const size_t stride = (steps + kMostBounds - 2) / (kMostBounds - 1);
  std::vector<size_t> out = {0};
  for (size_t i = steps % stride == 0 ? stride : steps % stride; i <= steps; i += stride) out.push_back(i);
  return out;
}

// ---- A map

using output::Value;
using types::Kind;

std::string signed_text(bool is_signed, int64_t number) {
  return is_signed ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
}

// A value as one number; "" if it is none.
struct NumberText {
  std::string operator()(bool value) const { return value ? "1" : "0"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(uint64_t value) const { return std::to_string(value); }
  std::string operator()(const output::EnumValue& value) const { return std::to_string(value.number); }
  std::string operator()(const output::PointerValue& value) const { return std::to_string(value.address); }
  std::string operator()(const output::StatsValue& value) const {
    return signed_text(value.is_signed, output::average(value));
  }
  std::string operator()(const output::TseriesValue& value) const {
    const auto last = std::find_if(value.points.rbegin(), value.points.rend(),
                                   [](const output::TseriesPoint& point) { return point.value.has_value(); });
    return last == value.points.rend() ? "" : signed_text(value.is_signed, *last->value);
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

bool is_stack(const Value& part) { return std::holds_alternative<output::StackValue>(part.node); }

// The parts of a key; nothing for a scalar.
std::vector<const Value*> parts_of(const output::MapView& view, const Value& key, size_t count) {
  std::vector<const Value*> out;
  if (view.is_scalar) return out;
  const auto* tuple = std::get_if<output::TupleValue>(&key.node);
  if (tuple == nullptr || tuple->items.size() != count) return {&key};
  for (const Value& item : tuple->items) out.push_back(&item);
  return out;
}

std::string with_bound(const std::string& labels, const std::string& bound) {
  return fmt::format("{}{}le=\"{}\"", labels, labels.empty() ? "" : ",", bound);
}

void write_histogram(const std::string& labels, const Histogram& histogram, const std::vector<size_t>& shown,
                     Exposition& out) {
  uint64_t sum = 0;
  size_t next = 0;
  for (const size_t index : shown) {
    for (; next <= index; ++next) sum += histogram.count(next);
    out.sample("_bucket", with_bound(labels, bound_text(histogram.upper(index))), sum);
  }
  for (; next < histogram.size(); ++next) sum += histogram.count(next);
  out.sample("_bucket", with_bound(labels, "+Inf"), sum);
  const auto total = histogram.estimated_sum();
  if (!total) return;  // OpenMetrics has a count only with a sum
  out.sample("_sum", labels, fmt::format("{:.17g}", *total));
  out.sample("_count", labels, sum);
}

void write_summary(const std::string& labels, const output::StatsValue& stats, Exposition& out) {
  out.sample("_count", labels, stats.count);
  // A sum of a summary must not be negative.
  if (!stats.is_signed || stats.total >= 0) out.sample("_sum", labels, signed_text(stats.is_signed, stats.total));
}

// ---- What probes cost

using output::ProgramCost;

constexpr size_t kMaxPrograms = 1000;    // in metrics
constexpr size_t kMaxShownPrograms = 8;  // on the page

std::string seconds_text(double ns) { return fmt::format("{:.9f}", ns / 1e9); }

// "tracepoint:syscalls:sys_enter_openat", "uprobe:/bin/app:a and 3 more"
std::string probes_text(const ProgramCost& program) {
  const std::string& first = program.probes[0].name;
  return program.probes.size() == 1 ? first : fmt::format("{} and {} more", first, program.probes.size() - 1);
}

// The most expensive first.
std::vector<ProgramCost> most_expensive(const output::CostReport& report, size_t most) {
  std::vector<ProgramCost> out = report.programs;
  std::ranges::stable_sort(out, std::ranges::greater(), &ProgramCost::cpus);
  if (out.size() > most) out.resize(most);
  return out;
}

void write_map_memory(const program::Program& program, const output::CostReport& report, Exposition& out) {
  std::map<std::string, uint64_t> bytes;  // some of espy's own have the same name
  for (const program::MapId id : program.maps.ids())
    if (id.index < report.bytes_by_map.size()) bytes[program.maps[id].name] += report.bytes_by_map[id.index];
  out.family("espy_map_memory_bytes", MetricKind::kGauge, "Kernel memory of a map of the script, or of espy's own.");
  for (const auto& [name, sum] : bytes) out.sample("", label("map", name), sum);
}

// ---- The run

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

// ---- The text

std::string escaped_label(std::string_view text) { return escape_characters(printable_line(text), "\\\""); }

std::string label(std::string_view name, std::string_view value) {
  return fmt::format("{}=\"{}\"", name, escaped_label(value));
}

std::string bound_text(double value) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value > -kExact && value < kExact) return fmt::format("{:.1f}", value);
  return fmt::format("{:.17g}", value);
}

void Exposition::family(std::string_view name, MetricKind kind, std::string_view help) {
  name_ = name;
  const bool has_suffix = kind == MetricKind::kCounter && format_ == ExpositionFormat::kText;
  const std::string shown = has_suffix ? name_ + "_total" : name_;
  text_ +=
      fmt::format("# HELP {} {}\n# TYPE {} {}\n", shown, escaped_label(help), shown, kKinds[static_cast<size_t>(kind)]);
}

void Exposition::sample(std::string_view suffix, std::string_view labels, std::string_view value) {
  text_.append(name_).append(suffix);
  if (!labels.empty()) text_.append("{").append(labels).append("}");
  text_.append(" ").append(value).append("\n");
}

std::string Exposition::finish() {
  if (format_ == ExpositionFormat::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

ExpositionFormat format_for(std::string_view accept) {
  const bool is_open = accept.find("application/openmetrics-text") != accept.npos;
  return is_open ? ExpositionFormat::kOpenMetrics : ExpositionFormat::kText;
}

std::string_view content_type_of(ExpositionFormat format) {
  return format == ExpositionFormat::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                                  : "text/plain; version=0.0.4; charset=utf-8";
}

// ---- Bounds of histograms

Histogram::Histogram(const output::Value& value)
    : hist_(std::get_if<output::HistValue>(&value.node)), lhist_(std::get_if<output::LhistValue>(&value.node)) {
  if (hist_ != nullptr) buckets_ = &hist_->buckets;
  if (lhist_ != nullptr) buckets_ = &lhist_->buckets;
}

double Histogram::lower(size_t index) const {
  if (index == 0) return -kInfinite;
  if (hist_ != nullptr)
    return static_cast<double>(program::hist_bucket_start(static_cast<uint32_t>(index), hist_->bits));
  const double start =
      static_cast<double>(lhist_->min) + static_cast<double>(index - 1) * static_cast<double>(lhist_->step);
  return std::min(start, static_cast<double>(lhist_->max));
}

double Histogram::upper(size_t index) const {
  if (index + 1 >= size()) return kInfinite;
  if (hist_ != nullptr && index > 0)
    return static_cast<double>(program::hist_bucket_start(static_cast<uint32_t>(index) + 1, hist_->bits) - 1);
  return lower(index + 1) - 1;
}

std::optional<double> Histogram::estimated_sum() const {
  double sum = 0;
  for (size_t i = 0; i < size(); ++i) {
    if (count(i) == 0) continue;
    const double low = i == 0 ? upper(i) : lower(i);
    const double high = std::isinf(upper(i)) ? low : upper(i);
    if (low < 0 || (i == 0 && hist_ != nullptr)) return std::nullopt;
    sum += (low + high) / 2 * static_cast<double>(count(i));
  }
  return sum;
}

std::vector<size_t> shown_bounds(const std::vector<const output::Value*>& histograms) {
  if (histograms.empty()) return {};
  const output::Value& first = *histograms.front();
  if (const auto* hist = std::get_if<output::HistValue>(&first.node))
    return hist_bounds(hist->bits, std::ranges::any_of(histograms, [](const output::Value* value) {
                         return Histogram(*value).count(0) > 0;
                       }));
  if (const auto* lhist = std::get_if<output::LhistValue>(&first.node)) return lhist_bounds(lhist->buckets.size());
  return {};
}

// ---- A map

std::optional<MetricKind> metric_kind(Kind value) {
  switch (value) {
    case Kind::kCount:
    case Kind::kSum: return MetricKind::kCounter;
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg:
    case Kind::kTseries:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kEnum:
    case Kind::kPointer: return MetricKind::kGauge;
    case Kind::kStats: return MetricKind::kSummary;
    case Kind::kHist:
    case Kind::kLhist: return MetricKind::kHistogram;
    default: return std::nullopt;
  }
}

std::vector<MapMetrics::Row> MapMetrics::rows_of(const output::MapView& view, const output::TextStyle& style) const {
  std::vector<Row> out;
  std::set<std::string, std::less<>> seen;
  output::TextStyle shown = style;
  shown.is_for_terminal = true;  // texts that differ stay different
  for (const output::MapEntry& entry : view.entries) {
    const std::vector<const Value*> parts = parts_of(view, entry.key, map_.labels.size());
    if (std::ranges::any_of(parts, [](const Value* part) { return is_stack(*part); })) continue;
    if (parts.size() != map_.labels.size()) continue;
    Row row{"", &entry.value};
    for (size_t i = 0; i < parts.size(); ++i)
      row.labels += (i > 0 ? "," : "") + label(map_.labels[i], output::to_text(*parts[i], shown));
    if (seen.insert(row.labels).second) out.push_back(std::move(row));
  }
  return out;
}

// Those that were shown the last time, then the largest.
void MapMetrics::keep_most(std::vector<Row>& rows, size_t most) {
  if (rows.size() <= most) {
    shown_.clear();
    return;
  }
  std::ranges::reverse(rows);  // display order is ascending
  std::stable_partition(rows.begin(), rows.end(), [&](const Row& row) { return shown_.contains(row.labels); });
  rows.resize(most);
  std::ranges::reverse(rows);
  shown_.clear();
  for (const Row& row : rows) shown_.insert(row.labels);
}

uint64_t MapMetrics::write(const output::MapView& view, size_t max_samples, const output::TextStyle& style,
                           Exposition& out) {
  const MetricKind kind = *metric_kind(map_.value);
  const std::string help =
      kind == MetricKind::kHistogram ? map_.help + " (_sum is estimated from the buckets)" : map_.help;
  out.family(family_, kind, help);
  std::vector<Row> rows = rows_of(view, style);
  std::vector<size_t> bounds;
  if (kind == MetricKind::kHistogram) {
    std::vector<const Value*> values;
    for (const Row& row : rows) values.push_back(row.value);
    bounds = shown_bounds(values);
  }
  const size_t samples_of_key = kind == MetricKind::kHistogram ? bounds.size() + 3
                                : kind == MetricKind::kSummary ? 2
                                                               : 1;
  keep_most(rows, std::max<size_t>(max_samples / samples_of_key, 1));
  uint64_t written = 0;
  for (const Row& row : rows) {
    ++written;
    const auto* stats = std::get_if<output::StatsValue>(&row.value->node);
    const std::string number = std::visit(NumberText(), row.value->node);
    if (kind == MetricKind::kHistogram)
      write_histogram(row.labels, Histogram(*row.value), bounds, out);
    else if (kind == MetricKind::kSummary && stats != nullptr)
      write_summary(row.labels, *stats, out);
    else if (number.empty() || (kind == MetricKind::kCounter && number.starts_with('-')))
      --written;  // a counter must not be negative
    else
      out.sample(kind == MetricKind::kCounter ? "_total" : "", row.labels, number);
  }
  return view.entries.size() - written;
}

// ---- What probes cost

size_t write_cost(const program::Program& program, const runtime::RunCost& cost, Exposition& out) {
  const std::vector<ProgramCost> programs = most_expensive(cost.whole, kMaxPrograms);
  const auto family = [&](std::string_view name, MetricKind kind, std::string_view help, const auto& value_of) {
    out.family(name, kind, help);
    for (const ProgramCost& each : programs) {
      const std::string labels =
          label("program", std::to_string(each.id.index)) + "," + label("probe", probes_text(each));
      if (const std::string value = value_of(each); !value.empty())
        out.sample(kind == MetricKind::kCounter ? "_total" : "", labels, value);
    }
  };
  family("espy_program_timed_runs", MetricKind::kCounter, "Runs of a BPF program that were timed: a sample of all.",
         [](const ProgramCost& each) { return std::to_string(each.timed_runs); });
  family("espy_program_timed_seconds", MetricKind::kCounter, "Time of these runs, with the timing.",
         [](const ProgramCost& each) { return seconds_text(static_cast<double>(each.timed_ns)); });
  family("espy_program_hook_seconds", MetricKind::kGauge, "Time to reach the program and to return from it.",
         [](const ProgramCost& each) { return each.hook_ns ? seconds_text(*each.hook_ns) : std::string(); });
  family("espy_program_cpu_ratio", MetricKind::kGauge,
         "Recent share of a CPU, with the time to reach the program, without the timing.",
         [&](const ProgramCost& each) {
           const auto lately = std::ranges::find(cost.lately.programs, each.id, &ProgramCost::id);
           return lately != cost.lately.programs.end() ? fmt::format("{:.6f}", lately->cpus) : std::string();
         });
  out.family("espy_timing_seconds", MetricKind::kGauge, "Time that the timing adds to a timed run.");
  out.sample("", "", seconds_text(cost.whole.measuring.ns_per_run));
  write_map_memory(program, cost.whole, out);
  out.family("espy_peak_memory_bytes", MetricKind::kGauge, "Peak memory of the espy process.");
  out.sample("", "", cost.whole.tracer_bytes);
  return cost.whole.programs.size() - programs.size();
}

std::string cost_json(const runtime::RunCost& cost) {
  output::JsonList programs(",");
  for (const ProgramCost& program : most_expensive(cost.lately, kMaxShownPrograms)) {
    const std::string ns = program.ns_per_run ? fmt::format("{:.0f}", *program.ns_per_run) : "null";
    programs.add(
        fmt::format("[{},{:.6f},{},{:.1f}]", json_string(probes_text(program)), program.cpus, ns, program.events));
  }
  return fmt::format("{{\"cpus\":{:.6f},\"map_bytes\":{},\"tracer_bytes\":{},\"programs\":{}}}", cost.lately.cpus(),
                     cost.lately.map_bytes, cost.lately.tracer_bytes, programs.array());
}

// ---- The run

// The kinds of espy_lost, by LossKind.
constexpr std::string_view kFormerLossKinds[] = {"missed",      "over_budget",    "lost_records", "full_map",
                                                 "lost_stacks", "guessed_stacks", "cut_strings",  "failed_reads",
                                                 "cut_loops",   "bad_values"};
static_assert(std::size(kFormerLossKinds) == output::kLossKinds);

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
  out.family("espy_web_viewers", MetricKind::kGauge, "Open pages of this run.");
  out.sample("", "", counts.viewers);
  out.family("espy_web_viewers_dropped", MetricKind::kCounter,
             "Pages that espy disconnected because they took no data.");
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
             "Omitted keys of a map: beyond max_metric_samples, or without a number.");
  for (const auto& [labels, count] : omitted) out.sample("", labels, count);
  out.family("espy_seen_ratio", MetricKind::kGauge,
             "Share of events that a map has seen. It is below 1 if a budget switched probes off part of the time.");
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
  out.family("espy_incomplete", MetricKind::kGauge,
             "Other reasons why numbers are not exact: evicted keys, offline CPUs, a clock that was set.");
  out.sample("", "", losses.others.size());
  out.family("espy_uncertain_addresses", MetricKind::kGauge,
             "Addresses without names, because the process had code from several files there.");
  out.sample("", "", losses.uncertain_addresses);
  const size_t omitted_probes = write_hits(losses, out), omitted_programs = write_cost(program_, cost, out);
  out.family("espy_omitted_probes", MetricKind::kGauge, "Omitted probes and programs.");
  out.sample("", "", omitted_probes + omitted_programs);
  out.family(
      "espy_losses", MetricKind::kCounter,
      "Missing or incomplete events by kind. If these, espy_changed_files and espy_incomplete are 0, every number "
      "is exact.");
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    out.sample("_total", label("kind", output::name_of(static_cast<program::LossKind>(kind)).key), losses.totals[kind]);
  out.family("espy_lost", MetricKind::kCounter, "Deprecated: espy_losses under its former name and kinds.");
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    out.sample("_total", label("kind", kFormerLossKinds[kind]), losses.totals[kind]);
}

}  // namespace espy::serve
