// The base of sinks for formats that cannot represent all events: writes the others to stderr as text.
#pragma once

#include <unistd.h>

#include <memory>
#include <vector>

#include "output/sink.h"

namespace espy::output {

class TextFallbackSink : public Sink {
 public:
  TextFallbackSink(const TextStyle& style, bool quiet)
      : fallback_out_(STDERR_FILENO, Buffering::kNone), text_(find_sink("text")->create(fallback_out_, style, quiet)) {}

  void attached(uint64_t probe_count) override { text_->attached(probe_count); }
  void text(std::string_view kind, std::string_view text) override { text_->text(kind, text); }
  void value(const Value& value) override { text_->value(value); }
  void span(const SpanEvent& event) override { text_->span(event); }
  void map(const MapView& map) override { text_->map(map); }
  void lost(uint64_t events) override { text_->lost(events); }
  void total_lost(uint64_t events) override { text_->total_lost(events); }
  void loss_report(const LossReport& loss_report) override { text_->loss_report(loss_report); }
  void cost(const CostReport& report) override { text_->cost(report); }
  void explain(std::string_view text) override { text_->explain(text); }
  void helper_error(const HelperError& error) override { text_->helper_error(error); }
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    text_->message(kind, text, file, line, column, end_column);
  }
  void end() override {}
  void tests_begin(size_t count) override { text_->tests_begin(count); }
  void test_begin(std::string_view name) override { text_->test_begin(name); }
  void test_end(const TestResult& result) override { text_->test_end(result); }
  void tests_end(const std::vector<TestResult>& results) override { text_->tests_end(results); }
  void benchmarks_begin() override { text_->benchmarks_begin(); }
  void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) override {
    text_->benchmark(name, average_ns, iterations);
  }

 private:
  Writer fallback_out_;
  std::unique_ptr<Sink> text_;
};

}  // namespace espy::output
