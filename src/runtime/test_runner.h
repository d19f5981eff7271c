// The test: and bench: probes of a script (--test, --bench), run one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/event_dispatcher.h"
#include "runtime/handler_context.h"
#include "runtime/probe_runner.h"
#include "runtime/run_control.h"

namespace espy::runtime {

// ---- A sink that keeps the output of a test as text, for the report of its result.

class Capture final : public output::Sink {
 public:
  static Result<std::unique_ptr<Capture>> make(const output::TextStyle& style);

  std::string take();  // returns the output since the last call
  // True after errorf(), a failed assert(), an error of the run, or lost records.
  bool has_failed() const { return has_failed_; }
  void reset_failure() { has_failed_ = false; }

  void attached(uint64_t) override {}
  void text(std::string_view kind, std::string_view text) override { inner_->text(kind, text); }
  void value(const output::Value& value) override { inner_->value(value); }
  void span(const output::SpanEvent& event) override { inner_->span(event); }
  void map(const output::MapView& map) override { inner_->map(map); }
  void lost(uint64_t) override { has_failed_ = true; }
  void total_lost(uint64_t) override {}
  void loss_report(const output::LossReport&) override {}
  void cost(const output::CostReport&) override {}
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override;
  void explain(std::string_view text) override { writer_.write(text); }
  void helper_error(const output::HelperError& error) override;
  void end() override {}
  void tests_begin(size_t) override {}
  void test_begin(std::string_view) override {}
  void test_end(const output::TestResult&) override {}
  void tests_end(const std::vector<output::TestResult>&) override {}
  void benchmarks_begin() override {}
  void benchmark(std::string_view, uint64_t, uint64_t) override {}

 private:
  Capture(OwnedFd file, const output::TextStyle& style);

  OwnedFd file_;
  output::Writer writer_;
  std::unique_ptr<output::Sink> inner_;
  bool has_failed_ = false;
};

// ---- TestRunner: runs the test: and bench: probes of a script (--test, --bench) one by one.

class TestRunner {
 public:
  // While it lives, what handlers print goes to `capture`. The arguments must outlive the runner.
  TestRunner(load::Machine& machine, const ProbeRunner& probes, EventDispatcher& events, RunControl& control,
             HandlerContext& context, Capture& capture, output::Sink& sink);
  ~TestRunner() { context_.set_sink(sink_); }
  TestRunner(const TestRunner&) = delete;
  TestRunner& operator=(const TestRunner&) = delete;

  // Runs the begin probes, discarding what they print.
  Status begin();
  // Returns how many tests failed.
  Result<size_t> run_tests();
  Status run_benchmarks();
  // Runs the end probes, discarding what they print.
  Status end();

 private:
  Result<output::TestResult> run_test(const program::Probe& probe);
  output::TestResult judge(const program::Probe& probe, const load::Machine::Measured& measured);

  load::Machine& machine_;
  const ProbeRunner& probes_;
  EventDispatcher& events_;
  RunControl& control_;
  HandlerContext& context_;
  Capture& capture_;
  output::Sink& sink_;
};

}  // namespace espy::runtime
