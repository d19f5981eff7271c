#include "runtime/test_runner.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace espy::runtime {

Capture::Capture(OwnedFd file, const output::TextStyle& style)
    : file_(std::move(file)),
      writer_(file_.get(), output::Buffering::kFull),
      inner_(output::find_sink("text")->create(writer_, style, output::Quiet::kYes)) {}

Result<std::unique_ptr<Capture>> Capture::make(const output::TextStyle& style) {
  OwnedFd file(::memfd_create("espy-test", MFD_CLOEXEC));
  if (!file.valid()) return fail_errno("cannot keep the output of tests", errno);
  return std::unique_ptr<Capture>(new Capture(std::move(file), style));
}

std::string Capture::take() {
  writer_.flush();
  const off_t size = ::lseek(file_.get(), 0, SEEK_CUR);
  std::string out(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  const ssize_t got = ::pread(file_.get(), out.data(), out.size(), 0);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  ::lseek(file_.get(), 0, SEEK_SET);
  return out;
}

void Capture::message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                      uint32_t column, uint32_t end_column) {
  const bool is_error = kind == "errorf" || kind == "runtime_error";
  has_failed_ |= is_error;
  const std::string place = file.empty() ? "" : fmt::format("{}:{}:{}-{}: ", file, line, column, end_column);
  writer_.write(
      fmt::format("{}{}: {}{}", place, is_error ? "ERROR" : "WARNING", text, text.ends_with('\n') ? "" : "\n"));
}

void Capture::helper_error(const output::HelperError& error) {
  writer_.write(fmt::format("{}:{}:{}-{}: WARNING: {} ({}: {})\n", error.file, error.line, error.column,
                            error.end_column, error.message, error.helper, error.code));
}

using Phase = spec::Provider::Phase;

TestRunner::TestRunner(load::Machine& machine, const ProbeRunner& probes, EventDispatcher& events, RunControl& control,
                       HandlerContext& context, Capture& capture, output::Sink& sink)
    : machine_(machine),
      probes_(probes),
      events_(events),
      control_(control),
      context_(context),
      capture_(capture),
      sink_(sink) {
  context_.set_sink(capture_);
}

Status TestRunner::begin() {
  TRY_STATUS(probes_.run_phase(Phase::kBegin));
  events_.drain_all();
  capture_.take();
  return {};
}

Status TestRunner::end() {
  TRY_STATUS(probes_.run_phase(Phase::kEnd));
  events_.drain_all();
  return {};
}

output::TestResult TestRunner::judge(const program::Probe& probe, const load::Machine::Measured& measured) {
  // exit(0) ends a test that has passed. A flag without a request is an exit whose record, and so its status, was lost.
  const bool has_quit = control_.is_exit_requested() ? control_.exit_status() != 0 : control_.has_exit_flag();
  output::TestResult result{.name = probe.function, .duration_ns = measured.average_ns, .output = capture_.take()};
  if (measured.result != 0) result.output += fmt::format("it returned {}\n", static_cast<int32_t>(measured.result));
  if (has_quit && !capture_.has_failed()) result.output += fmt::format("it exited with {}\n", control_.exit_status());
  result.has_passed = measured.result == 0 && !has_quit && !capture_.has_failed();
  return result;
}

Result<output::TestResult> TestRunner::run_test(const program::Probe& probe) {
  sink_.test_begin(probe.function);
  const load::Machine::Measured measured = TRY(machine_.measure(probe.program, 1));
  events_.drain_all();
  output::TestResult result = judge(probe, measured);
  capture_.reset_failure();
  control_.reset();
  sink_.test_end(result);
  return result;
}

Result<size_t> TestRunner::run_tests() {
  const auto probes = probes_.probes_of(Phase::kTest);
  std::vector<output::TestResult> results;
  sink_.tests_begin(probes.size());
  for (const program::Probe* probe : probes) results.push_back(TRY(run_test(*probe)));
  sink_.tests_end(results);
  return static_cast<size_t>(std::ranges::count(results, false, &output::TestResult::has_passed));
}

// Each benchmark runs for about 20 ms, in parts of 500 runs, between which the ring is drained so that it does not
// overflow.
Status TestRunner::run_benchmarks() {
  constexpr uint64_t kPart = 500, kTotalNs = 20'000'000, kShortestNs = 500;
  const auto probes = probes_.probes_of(Phase::kBench);
  if (!probes.empty()) sink_.benchmarks_begin();
  for (const program::Probe* probe : probes) {
    const uint64_t about_ns = TRY(machine_.measure(probe->program, kPart)).average_ns;
    const uint64_t parts = std::clamp<uint64_t>(kTotalNs / std::max(about_ns, kShortestNs) / kPart, 1, 100);
    uint64_t sum_ns = 0;
    for (uint64_t i = 0; i < parts; ++i) {
      events_.drain_all();
      control_.reset();
      sum_ns += TRY(machine_.measure(probe->program, kPart)).average_ns;
    }
    events_.drain_all();
    capture_.take();
    control_.reset();
    sink_.benchmark(probe->function, sum_ns / parts, parts * kPart);
  }
  return {};
}

}  // namespace espy::runtime
