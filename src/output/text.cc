// Text output, byte for byte that of bpftrace.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <unordered_set>

#include "base/clock.h"
#include "base/strings.h"
#include "output/histogram.h"
#include "output/quantity.h"
#include "output/sink.h"
#include "output/spans.h"

namespace espy::output {

namespace {

// ---- Maps -----------------------------------------------------------------------------------------------------------

template <class... T>
bool is_any_of(const Value& value) {
  return (std::holds_alternative<T>(value.node) || ...);
}

const std::string* text_of(const Value& part) {
  if (const auto* string = std::get_if<StringValue>(&part.node)) return &string->text;
  const auto* text = std::get_if<TextValue>(&part.node);
  return text != nullptr ? &text->text : nullptr;
}

bool has_comma(const Value& part) {
  const std::string* text = text_of(part);
  return text != nullptr && text->find(", ") != text->npos;
}

// Whether keys of several parts have one text: ("a, b", "c") and ("a", "b, c").
bool have_equal_keys(const ShownEntries& entries) {
  const Value first = entries.empty() ? Value() : entries.at(0).key;
  const auto* parts = std::get_if<TupleValue>(&first.node);
  const auto is_text = [](const Value& part) { return text_of(part) != nullptr; };
  if (parts == nullptr || std::ranges::count_if(parts->items, is_text) < 2) return false;
  bool has_commas = false;
  for (const MapEntry& entry : entries)
    if (const auto* key = std::get_if<TupleValue>(&entry.key.node))
      has_commas |= std::ranges::any_of(key->items, has_comma);
  if (!has_commas) return false;
  std::unordered_set<size_t> seen;  // hashes
  for (const MapEntry& entry : entries)
    if (!seen.insert(std::hash<std::string>()(key_text(entry.key, {}))).second) return true;
  return false;
}

// The key with a backslash in front of commas and backslashes in the texts of its parts.
Value with_escaped_commas(Value key) {
  const auto escape = [](std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == ',' || c == '\\') out += '\\';
      out += c;
    }
    text = std::move(out);
  };
  if (auto* tuple = std::get_if<TupleValue>(&key.node))
    for (Value& item : tuple->items) {
      if (auto* text = std::get_if<StringValue>(&item.node)) escape(text->text);
      if (auto* text = std::get_if<TextValue>(&item.node)) escape(text->text);
    }
  return key;
}

class TextSink final : public Sink {
 public:
  TextSink(Writer& out, TextStyle style, Quiet quiet)
      : out_(out), style_(for_terminal(std::move(style), out)), spans_(style_), is_quiet_(quiet == Quiet::kYes) {}

  void attached(uint64_t probe_count) override {
    if (!is_quiet_) warn(fmt::format("Attached {} probe{}\n", probe_count, probe_count == 1 ? "" : "s"));
  }
  void text(std::string_view, std::string_view text) override {
    out_.write(spans_.flush());
    out_.write(text);
  }
  void span(const SpanEvent& event) override { out_.write(spans_.add(event)); }
  void value(const Value& value) override {
    const auto* recent = std::get_if<RecentValue>(&value.node);
    const bool is_nothing = recent != nullptr && recent->items.empty();
    out_.write(spans_.flush() + (is_nothing ? "" : to_text(value, style_) + "\n"));
  }

  void map(const MapView& map) override {
    out_.write(spans_.flush());
    const types::Unit unit = unit_for(map, style_);
    const std::string seen = seen_text(map);
    std::string line;
    const ShownEntries entries = shown_entries(map);
    const bool is_exact = have_equal_keys(entries);
    for (const MapEntry& entry : entries) {
      line = map.name;
      if (!map.is_scalar) {
        line += '[';
        append_key_text(line, is_exact ? with_escaped_commas(entry.key) : entry.key, style_);
        line += ']';
      }
      append_tail(line, entry.value, map.divisor, unit, seen);
      out_.write(line);
    }
  }

  void lost(uint64_t events) override { warn(fmt::format("Lost {} events\n", events)); }
  void total_lost(uint64_t events) override {
    warn(fmt::format("WARNING: Total lost event count: {}\n", events) +
         "  hint: a larger perf_rb_pages has room for more events\n");
  }

  void loss_report(const LossReport& loss_report) override { warn(printable(to_text(loss_report))); }
  void cost(const CostReport& report) override { warn(printable(to_text(report))); }

  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    const std::string_view word = kind == "errorf" ? "ERROR" : "WARNING";
    const std::string place =
        file.empty() ? "" : fmt::format("{}:{}:{}-{}: ", printable(file), line, column, end_column);
    // The script may use control characters, such as those for colours.
    const std::string shown = kind == "runtime_error" ? printable(text) : std::string(text);
    warn(fmt::format("{}{}: {}{}", place, word, shown, text.ends_with('\n') ? "" : "\n"));
  }

  void explain(std::string_view text) override { warn(printable(text)); }

  void helper_error(const HelperError& error) override {
    warn(fmt::format("{}:{}:{}-{}: WARNING: {}\n{}Additional Info - helper: {}, retcode: {}\n", printable(error.file),
                     error.line, error.column, error.end_column, error.message, printable(error.excerpt), error.helper,
                     error.code));
  }

  void end() override { out_.write(spans_.flush() + "\n\n"); }

  // GoogleTest's format, which many tools read.
  void tests_begin(size_t count) override { mark(true, "==========", fmt::format("Running {}.", tests(count))); }
  void test_begin(std::string_view name) override { mark(true, " RUN      ", name); }
  void test_end(const TestResult& result) override {
    if (!result.has_passed) out_.write(result.output);
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
  static std::string tests(size_t count) { return fmt::format("{} test{}", count, count == 1 ? "" : "s"); }

  void mark(bool is_good, std::string_view word, std::string_view text) {
    out_.write(fmt::format("\033[0;3{}m[{}]\033[m {}\n", is_good ? 2 : 1, word, text));
  }

  std::string lines(const RecentValue& recent) const {
    std::string out;
    for (const Value& item : recent.items) out += "    " + to_text(item, style_) + "\n";
    return out;
  }

  static std::string seen_text(const MapView& map) {
    return map.seen_share < 1 ? fmt::format(" (sampled {})", percent_text(map.seen_share)) : "";
  }

  // The text after the name. Histograms start on a new line and end with an empty one.
  void append_tail(std::string& out, const Value& value, uint64_t divisor, types::Unit unit,
                   const std::string& seen) const {
    if (is_any_of<HistValue, LhistValue, TseriesValue>(value)) {
      out.append(":").append(seen) += '\n';
      if (const auto* hist = std::get_if<HistValue>(&value.node))
        append_histogram(out, *hist, divisor, {unit, style_.has_percentiles});
      else
        append_text(out, value, unit, style_);
      out += '\n';
    } else if (const auto* recent = std::get_if<RecentValue>(&value.node)) {
      out += ":" + seen + "\n" + lines(*recent);
    } else {
      out += ": ";
      if (unit == types::Unit::kNone && divisor <= 1)
        append_text(out, value, style_);
      else
        out += to_text(divided(value, divisor), unit, style_);
      out.append(seen) += '\n';
    }
  }

  // Flushes stdout first, so that messages on stderr are in order.
  void warn(const std::string& text) {
    out_.write(spans_.flush());
    out_.batch_end();
    messages_.write(text);
  }

  Writer& out_;
  Writer messages_{STDERR_FILENO, Buffering::kNone};
  TextStyle style_;
  SpanText spans_;
  bool is_quiet_;
};

std::unique_ptr<Sink> make_text_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<TextSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kTextSink = {.name = "text",
                                      .doc = "lines to read, in the format of bpftrace",
                                      .has_text = true,
                                      .has_lines = true,
                                      .create = make_text_sink};

}  // namespace espy::output
