#include "strace/strace_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "run/run_script.h"
#include "runtime/resolver.h"
#include "strace/call_filter.h"
#include "strace/capture_script.h"

namespace espy::strace {

namespace {

Result<CallFilter> make_filter(const StraceOptions& wishes, const CallTable& table) {
  CallFilter out;
  out.calls.set();
  for (const std::string& each : wishes.expressions) TRY_STATUS(apply_expression(table, each, out));
  if (wishes.only_failed) out.shows_successful = out.shows_unfinished = false;
  if (wishes.only_successful) out.shows_failed = out.shows_unfinished = false;
  return out;
}

// The script prints nothing itself: the tracer takes its records. Messages of the run go to standard error.
run::RunOptions options_of_script(const run::RunOptions& options, std::string script) {
  run::RunOptions out = options;
  out.script.text = std::move(script);
  out.output.file = "/dev/null";
  out.output.format = "text";
  out.output.is_quiet = true;
  out.output.hides_warnings = true;
  return out;
}

void say_what_is_missing(const CallTracer& tracer) {
  std::string out;
  if (tracer.lost() > 0)
    out += fmt::format("WARNING: {} records were lost: calls are missing, or have no begin or end\n", tracer.lost());
  if (tracer.missing() > 0)
    out += fmt::format("WARNING: {} arguments are shown as addresses: their memory {}\n", tracer.missing(),
                       tracer.lost() > 0 ? "was not there, or its record was lost" : "was not there");
  std::fputs(out.c_str(), stderr);
}

}  // namespace

int run_strace(const StraceOptions& wishes, const run::RunOptions& options, const run::Host& host) {
  const CallTable table(kernel::host_arch());
  const auto filter = make_filter(wishes, table);
  if (!filter) return run::complain(filter.error());
  OwnedFd file;
  if (wishes.file) {
    auto opened = open_output(*wishes.file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!opened) return run::complain(opened.error());
    file = std::move(*opened);
  }
  output::Writer out(file.valid() ? file.get() : STDERR_FILENO, output::Buffering::kLine);
  CaptureWishes capture{.calls = filter->calls,
                        .is_all = filter->is_all,
                        .has_memory = wishes.lines.has_lines,
                        .text_bytes = wishes.style.text_bytes};
  const run::RunOptions of_script = options_of_script(options, write_capture_script(table, capture));
  if (const Status may_run = host.check_can_run(of_script); !may_run) return run::complain(may_run.error());
  const auto environment = host.open(of_script);
  if (!environment) return run::complain(environment.error());
  run::Environment& e = **environment;
  run::follow_command(of_script, e);
  CallTracer tracer(table, *filter, wishes.style, wishes.lines, out, runtime::wall_clock_offset_ns(CLOCK_BOOTTIME));
  const auto prepare = [&](const program::Program& program, run::Environment& environment_of_run,
                           runtime::SessionOptions& session) {
    if (host.prepare) host.prepare(program, environment_of_run, session);
    if (session.tracee.child_pid != 0) tracer.begin_with(session.tracee.child_pid);
    session.tap = &tracer;
  };
  const int status = run::run_script(of_script, e, prepare);
  if (!options.stages.dumped.empty()) return status;
  say_what_is_missing(tracer);
  return status == 0 && tracer.exit_status() ? *tracer.exit_status() : status;
}

}  // namespace espy::strace
