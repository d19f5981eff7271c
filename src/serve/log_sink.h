// LogSink: passes all output on to the sink of the run, and keeps the lines of text for those who view it.
#pragma once

#include "output/sink.h"
#include "output/span_text.h"
#include "serve/recent_lines.h"

namespace espy::serve {

class LogSink final : public output::Sink {
 public:
  // The arguments must outlive the sink.
  LogSink(output::Sink& inner, RecentLines& lines, output::TextStyle style)
      : inner_(inner), lines_(lines), style_(std::move(style)) {}

  void begin(const output::RunInfo& run) override { inner_.begin(run); }
  void attached(uint64_t probe_count) override { inner_.attached(probe_count); }
  void text(std::string_view kind, std::string_view text) override;
  void text_line(std::string_view kind, std::string_view text) override;
  void value(const output::Value& value) override;
  void span(const output::SpanEvent& event) override;
  void map(const output::MapView& map) override { inner_.map(map); }  // shown by its values, not by its prints
  void lost(uint64_t events) override { inner_.lost(events); }
  void total_lost(uint64_t events) override { inner_.total_lost(events); }
  void loss_report(const output::LossReport& loss_report) override { inner_.loss_report(loss_report); }
  void cost(const output::CostReport& report) override { inner_.cost(report); }
  void explain(std::string_view text) override { inner_.explain(text); }
  void helper_error(const output::HelperError& error) override;
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override;
  void end() override { inner_.end(); }
  void map_cleared(std::string_view name) override { inner_.map_cleared(name); }
  void batch_end() override { inner_.batch_end(); }
  void finish() override { inner_.finish(); }
  void tests_begin(size_t count) override { inner_.tests_begin(count); }
  void test_begin(std::string_view name) override { inner_.test_begin(name); }
  void test_end(const output::TestResult& result) override { inner_.test_end(result); }
  void tests_end(const std::vector<output::TestResult>& results) override { inner_.tests_end(results); }
  void benchmarks_begin() override { inner_.benchmarks_begin(); }
  void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) override {
    inner_.benchmark(name, average_ns, iterations);
  }

 private:
  output::Sink& inner_;
  RecentLines& lines_;
  output::TextStyle style_;
  output::SpanText spans_{style_};
};

}  // namespace espy::serve
