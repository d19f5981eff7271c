// TestRunner: runs the test: and bench: probes of a script (--test, --bench) one by one.
#pragma once

#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/capture.h"
#include "runtime/event_dispatcher.h"
#include "runtime/handler_context.h"
#include "runtime/probe_runner.h"
#include "runtime/run_control.h"

namespace espy::runtime {

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
