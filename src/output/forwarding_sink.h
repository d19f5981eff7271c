// ForwardingSink: a sink that passes all on to another one. Sinks that change some of it derive from it.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "output/sink.h"

namespace espy::output {

class ForwardingSink : public Sink {
 public:
  // `inner` must outlive the sink.
  explicit ForwardingSink(Sink& inner) : inner_(inner) {}

  void begin(const RunInfo& run) override { inner_.begin(run); }
  void attached(uint64_t probe_count) override { inner_.attached(probe_count); }
  void text(std::string_view kind, std::string_view text) override { inner_.text(kind, text); }
  void text_line(std::string_view kind, std::string_view text) override { inner_.text_line(kind, text); }
  void value(const Value& value) override { inner_.value(value); }
  void span(const SpanEvent& event) override { inner_.span(event); }
  void map(const MapView& map) override { inner_.map(map); }
  void lost(uint64_t events) override { inner_.lost(events); }
  void total_lost(uint64_t events) override { inner_.total_lost(events); }
  void loss_report(const LossReport& loss_report) override { inner_.loss_report(loss_report); }
  void cost(const CostReport& report) override { inner_.cost(report); }
  void explain(std::string_view text) override { inner_.explain(text); }
  void helper_error(const HelperError& error) override { inner_.helper_error(error); }
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    inner_.message(kind, text, file, line, column, end_column);
  }
  void end() override { inner_.end(); }
  void map_cleared(std::string_view name) override { inner_.map_cleared(name); }
  void batch_end() override { inner_.batch_end(); }
  void finish() override { inner_.finish(); }
  void tests_begin(size_t count) override { inner_.tests_begin(count); }
  void test_begin(std::string_view name) override { inner_.test_begin(name); }
  void test_end(const TestResult& result) override { inner_.test_end(result); }
  void tests_end(const std::vector<TestResult>& results) override { inner_.tests_end(results); }
  void benchmarks_begin() override { inner_.benchmarks_begin(); }
  void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) override {
    inner_.benchmark(name, average_ns, iterations);
  }

 protected:
  Sink& inner() { return inner_; }

 private:
  Sink& inner_;
};

// ---- TextFallbackSink: a sink of a format that has no place for most of the output. What it does not override is
// shown as text on standard error.

struct TextFallback {
  TextFallback(const TextStyle& style, Quiet quiet)
      : fallback_out(STDERR_FILENO, Buffering::kNone),
        fallback(find_sink("text")->create(fallback_out, style, quiet)) {}

  std::string shown(std::string_view text) const {
    return fallback_out.is_terminal() ? printable(text) : std::string(text);
  }

  Writer fallback_out;
  std::unique_ptr<Sink> fallback;
};

class TextFallbackSink : private TextFallback, public ForwardingSink {
 public:
  TextFallbackSink(const TextStyle& style, Quiet quiet) : TextFallback(style, quiet), ForwardingSink(*fallback) {}

  void text(std::string_view kind, std::string_view text) override { ForwardingSink::text(kind, shown(text)); }
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    ForwardingSink::message(kind, shown(text), file, line, column, end_column);
  }
  // Formats override text() for both.
  void text_line(std::string_view kind, std::string_view text) override { this->text(kind, std::string(text) + "\n"); }
  void end() override {}
};

}  // namespace espy::output
