// HeldSink: keeps the output of a run while a screen hides where it would go, and passes it on afterwards.
#pragma once

#include <deque>
#include <functional>

#include "output/sink.h"
#include "output/span_text.h"

namespace espy::watch {

class HeldSink final : public output::Sink {
 public:
  // `holds_text`, `holds_messages`: the screen hides where text, and where messages go. Maps that the script prints are
  // not kept: the screen shows them. `inner` must outlive the sink.
  HeldSink(output::Sink& inner, output::TextStyle style, bool holds_text, bool holds_messages)
      : inner_(inner), style_(std::move(style)), holds_text_(holds_text), holds_messages_(holds_messages) {}

  void hold() { is_holding_ = true; }
  // Passes on what was kept: the last of it, if it was much.
  void release();

  void begin(const output::RunInfo& run) override { inner_.begin(run); }
  void attached(uint64_t probe_count) override { inner_.attached(probe_count); }
  void text(std::string_view kind, std::string_view text) override;
  void text_line(std::string_view kind, std::string_view text) override;
  void value(const output::Value& value) override;
  void span(const output::SpanEvent& event) override;
  void map(const output::MapView& map) override;
  void lost(uint64_t events) override;
  void total_lost(uint64_t events) override { inner_.total_lost(events); }
  void loss_report(const output::LossReport& loss_report) override { inner_.loss_report(loss_report); }
  void cost(const output::CostReport& report) override;
  void explain(std::string_view text) override;
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
  struct Kept {
    std::function<void(output::Sink&)> pass_on;
    size_t bytes = 0;
  };
  bool holds_text() const { return is_holding_ && holds_text_; }
  bool holds_messages() const { return is_holding_ && holds_messages_; }
  void keep(size_t bytes, std::function<void(output::Sink&)> pass_on);
  void keep_text(std::string_view kind, std::string text);

  output::Sink& inner_;
  output::TextStyle style_;
  output::SpanText spans_{style_};
  bool holds_text_, holds_messages_;
  bool is_holding_ = false;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace espy::watch
