// Text output, byte for byte what the field's scripts expect (docs: the language, "text output").
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "output/bytes.h"
#include "output/divide.h"
#include "output/histogram.h"
#include "output/sinks.h"

namespace espy::output {

namespace {

// ---- Values ---------------------------------------------------------------------------------------------------------

constexpr uint8_t kPerfMode = 1, kRawMode = 2, kBuildIdMode = 3;  // types::StackMode

std::string frame_text(const Frame& frame, const StackValue& stack) {
  const std::string symbol =
      frame.symbol.empty() ? fmt::format("{:#x}", frame.address) : fmt::format("{}+{}", frame.symbol, frame.offset);
  switch (stack.mode) {
    case kPerfMode:
      if (!stack.is_user) return fmt::format("\t{:x} {}\n", frame.address, symbol);
      return fmt::format("\t{:x} {} ({})\n", frame.address, symbol, frame.module.empty() ? "[unknown]" : frame.module);
    case kRawMode: return fmt::format("{:x}\n", frame.address);
    case kBuildIdMode: return fmt::format("        {} {:#x}\n", frame.build_id, frame.offset);
    default: return fmt::format("        {}\n", symbol);
  }
}

std::string stack_text(const StackValue& stack) {
  std::string out = "\n";
  if (!stack.problem.empty()) out += fmt::format("        [{}]\n", stack.problem);
  for (const Frame& frame : stack.frames) out += frame_text(frame, stack);
  return out;
}

std::string list_text(const std::vector<Value>& items, std::string_view separator, const TextStyle& style) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += separator;
    out += to_text(items[i], style);
  }
  return out;
}

std::string record_text(const RecordValue& record, const TextStyle& style) {
  if (record.items.empty()) return "{}";
  std::string out = "{ ";
  for (size_t i = 0; i < record.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (!record.names[i].empty()) out += fmt::format(".{} = ", record.names[i]);
    out += to_text(record.items[i], style);
  }
  return out + " }";
}

// `number` is the total or the average.
std::string stats_text(const StatsValue& stats, int64_t number) {
  return stats.is_signed ? std::to_string(number) : std::to_string(static_cast<uint64_t>(number));
}

std::string clock_text(uint64_t ns) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const auto seconds = static_cast<time_t>(ns / kNsPerSecond);
  tm local = {};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:09}", local.tm_hour, local.tm_min, local.tm_sec, ns % kNsPerSecond);
}

// A time a row, a star where its value lies between the smallest and the largest.
std::string tseries_text(const TseriesValue& series) {
  constexpr int kWidth = 51;
  int64_t min = INT64_MAX, max = INT64_MIN;
  for (const TseriesPoint& point : series.points) {
    if (!point.value) continue;
    min = std::min(min, *point.value);
    max = std::max(max, *point.value);
  }
  if (min > max) return "";
  if (min == max) {
    if (min > INT64_MIN) --min;
    if (max < INT64_MAX) ++max;
  }
  const std::string margin(19, ' '), line(kWidth, '_');
  const std::string scale = fmt::format("{}{:<52}{}\n", margin, min, max);
  std::string out = scale + fmt::format("{:<19}|{}|\n", "hh:mm:ss.ns", line);
  for (const TseriesPoint& point : series.points) {
    std::string graph(kWidth, ' ');
    if (point.value) {
      // Unsigned, as the range of int64 does not fit int64.
      const auto above_min = [&](int64_t value) {
        return static_cast<double>(static_cast<uint64_t>(value) - static_cast<uint64_t>(min));
      };
      const double share = above_min(*point.value) / above_min(max);
      graph[static_cast<size_t>(share * (kWidth - 1))] = '*';
    }
    out += fmt::format("{} |{}| {}\n", clock_text(point.start_ns), graph,
                       point.value ? std::to_string(*point.value) : "-");
  }
  return out + fmt::format("{}v{}v\n", margin, line) + scale;
}

struct ToText {
  const TextStyle& style;
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(uint64_t v) const { return std::to_string(v); }
  std::string operator()(const EnumValue& v) const { return v.name.empty() ? std::to_string(v.number) : v.name; }
  std::string operator()(const PointerValue& v) const { return fmt::format("{:#x}", v.address); }
  std::string operator()(const StringValue& v) const {
    return v.is_truncated ? v.text + style.truncation_trailer : v.text;
  }
  std::string operator()(const BufferValue& v) const { return escaped(v.bytes); }
  std::string operator()(const TextValue& v) const { return v.text; }
  std::string operator()(const StackValue& v) const { return stack_text(v); }
  std::string operator()(const ListValue& v) const { return "[" + list_text(v.items, ",", style) + "]"; }
  std::string operator()(const TupleValue& v) const { return "(" + list_text(v.items, ", ", style) + ")"; }
  std::string operator()(const RecordValue& v) const { return record_text(v, style); }
  std::string operator()(const HistValue& v) const { return histogram_rows(v, 0); }
  std::string operator()(const LhistValue& v) const { return histogram_rows(v); }
  std::string operator()(const StatsValue& v) const {
    if (v.only_average) return stats_text(v, average(v));
    return fmt::format("{{ .count = {}, .average = {}, .total = {} }}", v.count, stats_text(v, average(v)),
                       stats_text(v, v.total));
  }
  std::string operator()(const TseriesValue& v) const { return tseries_text(v); }
};

// ---- Maps -----------------------------------------------------------------------------------------------------------

template <class... T>
bool is_any_of(const Value& value) {
  return (std::holds_alternative<T>(value.node) || ...);
}

// The parentheses of a tuple are dropped: `@m[a, 1]`.
std::string key_text(const Value& key, const TextStyle& style) {
  if (const auto* tuple = std::get_if<TupleValue>(&key.node)) return list_text(tuple->items, ", ", style);
  return to_text(key, style);
}

class TextSink final : public Sink {
 public:
  TextSink(Writer& out, TextStyle style, bool quiet) : out_(out), style_(std::move(style)), is_quiet_(quiet) {}

  void attached(uint64_t probe_count) override {
    if (!is_quiet_) warn(fmt::format("Attached {} probe{}\n", probe_count, probe_count == 1 ? "" : "s"));
  }
  void text(std::string_view, std::string_view text) override { out_.write(text); }
  void value(const Value& value) override { out_.write(to_text(value, style_) + "\n"); }

  void map(const MapView& map) override {
    for (const MapEntry& entry : shown_entries(map)) {
      const std::string head =
          map.is_scalar ? std::string(map.name) : fmt::format("{}[{}]", map.name, key_text(entry.key, style_));
      out_.write(head + tail(entry.value, map.divisor));
    }
  }

  void lost(uint64_t events) override { warn(fmt::format("Lost {} events\n", events)); }
  void total_lost(uint64_t events) override {
    warn(fmt::format("WARNING: Total lost event count: {}\n", events) +
         "  hint: a larger perf_rb_pages has room for more events\n");
  }

  void ledger(const Ledger& ledger) override { warn(to_text(ledger)); }

  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    const std::string_view word = kind == "errorf" ? "ERROR" : "WARNING";
    const std::string place = file.empty() ? "" : fmt::format("{}:{}:{}-{}: ", file, line, column, end_column);
    warn(fmt::format("{}{}: {}{}", place, word, text, text.ends_with('\n') ? "" : "\n"));
  }

  void explain(std::string_view text) override { warn(std::string(text)); }

  void helper_error(const HelperError& error) override {
    warn(fmt::format("{}:{}:{}-{}: WARNING: {}\n{}Additional Info - helper: {}, retcode: {}\n", error.file, error.line,
                     error.column, error.end_column, error.message, error.excerpt, error.helper, error.code));
  }

  void end() override { out_.write("\n\n"); }

  // The look of GoogleTest, which many tools read.
  void tests_begin(size_t count) override { mark(true, "==========", fmt::format("Running {}.", tests(count))); }
  void test_begin(std::string_view name) override { mark(true, " RUN      ", name); }
  void test_end(const TestResult& result) override {
    out_.write(result.output);
    mark(result.has_passed, result.has_passed ? "       OK " : "  FAILED  ",
         fmt::format("{} ({} ms)", result.name, result.duration_ns / kNsPerMs));
  }
  void tests_end(const std::vector<TestResult>& results) override {
    uint64_t total_ns = 0;
    for (const TestResult& result : results) total_ns += result.duration_ns;
    const auto passed = static_cast<size_t>(std::ranges::count(results, true, &TestResult::has_passed));
    mark(true, "==========", fmt::format("{} ran. ({} ms total)", tests(results.size()), total_ns / kNsPerMs));
    mark(true, "  PASSED  ", tests(passed) + ".");
    if (passed == results.size()) return;
    mark(false, "  FAILED  ", tests(results.size() - passed) + ", listed below:");
    for (const TestResult& result : results)
      if (!result.has_passed) mark(false, "  FAILED  ", result.name);
  }
  void benchmarks_begin() override {
    out_.write(fmt::format("{:<40}{:<15}{}\n", "Benchmark", "Time(ns)", "Iterations"));
  }
  void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) override {
    out_.write(fmt::format("{:<40}{:<15}{}\n", name, average_ns, iterations));
  }

 private:
  static constexpr uint64_t kNsPerMs = 1'000'000;
  static std::string tests(size_t count) { return fmt::format("{} test{}", count, count == 1 ? "" : "s"); }

  void mark(bool is_good, std::string_view word, std::string_view text) {
    out_.write(fmt::format("\033[0;3{}m[{}]\033[m {}\n", is_good ? 2 : 1, word, text));
  }

  // What follows the name: graphs stand under it and end with an empty line.
  std::string tail(const Value& value, uint64_t divisor) const {
    if (const auto* hist = std::get_if<HistValue>(&value.node)) return ":\n" + histogram_rows(*hist, divisor) + "\n";
    if (is_any_of<LhistValue, TseriesValue>(value)) return ":\n" + to_text(value, style_) + "\n";
    return ": " + to_text(divided(value, divisor), style_) + "\n";
  }

  // Messages go to stderr, behind what stdout has so far.
  void warn(const std::string& text) {
    out_.batch_end();
    std::fputs(text.c_str(), stderr);
  }

  Writer& out_;
  TextStyle style_;
  bool is_quiet_;
};

}  // namespace

std::string to_text(const Value& value, const TextStyle& style) { return std::visit(ToText{style}, value.node); }

std::unique_ptr<Sink> make_text_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<TextSink>(out, std::move(style), quiet);
}

}  // namespace espy::output
