#include "cli/run_recorder.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/recorder.h"
#include "cli/run_script.h"
#include "runtime/resolver.h"

namespace espy::cli {

namespace {

constexpr uint64_t kLiveWaitNs = 20'000'000;  // of events that another process shows

// The command of -c has been started.
recording::Description describe(const Environment& e, const RecordWishes& wishes, const RecordScript& script,
                                const RecordPlan& plan) {
  recording::Description out;
  out.espy_version = ESPY_VERSION;
  out.command = plan.command;
  utsname names = {};
  if (::uname(&names) == 0) out.kernel_release = names.release;
  out.arch = e.kernel->arch().name;
  out.page_size_bytes = e.kernel->page_size_bytes();
  out.cpu_count = e.kernel->cpu_count();
  out.started_ns = clock_ns(CLOCK_BOOTTIME);
  out.started_wall_ns = out.started_ns + static_cast<uint64_t>(runtime::wall_clock_offset_ns(CLOCK_BOOTTIME));
  out.max_text_bytes = wishes.max_text_bytes;
  if (e.config.has_child) out.child_pid = e.config.child_pid;
  out.types = script.types;
  out.layouts = script.layouts;
  out.probes = script.probes;
  return out;
}

void show_summary(const recording::Writer& writer, const std::string& path, const recording::FileRing* ring) {
  const bool has_many = ring != nullptr && ring->first_path() != ring->last_path();
  const std::string files = has_many          ? fmt::format("{} to {}", ring->first_path(), ring->last_path())
                            : ring != nullptr ? ring->last_path()
                                              : path;
  const std::string line =
      fmt::format("Recorded {} events in {}, {:.1f} KB{}\n", writer.event_count(), files,
                  static_cast<double>(writer.total_bytes()) / 1024, has_many ? " with those that were deleted" : "");
  std::fputs(printable(line).c_str(), stderr);
}

// A recording that is made, from when the script was loaded on.
struct Recording {
  recording::Description description;
  std::optional<recording::FileRing> ring;
  std::optional<Recorder> recorder;
};

Result<recording::Writer> open_files(const RecordPlan& plan, Recording& out) {
  if (!plan.ring.has_any()) return recording::Writer::create(plan.path, out.description);
  out.ring = TRY(recording::FileRing::make(plan.path, plan.ring, out.description));
  return out.ring->begin();
}

Status begin(const RecordPlan& plan, Environment& e, uint32_t parents, Recording& out) {
  out.recorder.emplace(TRY(open_files(plan, out)), out.description, e.types, e.symbols,
                       e.kernel->arch().signal_trampoline, parents);
  if (out.ring) out.recorder->use_ring(&*out.ring);
  if (plan.reader != nullptr)
    out.recorder->write_at_once(kLiveWaitNs, plan.reader->needs_time, plan.reader->on_written);
  return {};
}

}  // namespace

Options options_of_recorder(const Options& options) {
  Options out = options;
  out.output_file = "/dev/null";
  out.format = "text";
  out.no_warnings = true;
  return out;
}

void show_warnings(const RecordScript& script) {
  constexpr size_t kMost = 10;
  const std::vector<std::string>& all = script.warnings;
  for (size_t i = 0; i < std::min(all.size(), kMost); ++i)
    std::fputs(fmt::format("WARNING: {}\n", printable_line(all[i])).c_str(), stderr);
  if (all.size() > kMost)
    std::fputs(fmt::format("WARNING: {} more warnings; espy -i FILE -lv names the values that are not recorded\n",
                           all.size() - kMost)
                   .c_str(),
               stderr);
}

int run_recorder(const Options& options, const Host& host, Environment& e, const RecordWishes& wishes,
                 RecordScript script, const RecordPlan& plan) {
  Recording recording;
  const auto prepare = [&](const program::Program& program, Environment& environment,
                           runtime::SessionOptions& session) {
    if (host.prepare) host.prepare(program, environment, session);
    recording.description = describe(environment, wishes, script, plan);
    const Status begun = begin(plan, environment, script.parents, recording);
    if (begun) {
      recording.recorder->use(program);
      session.tap = &*recording.recorder;
    }
    session.on_set_up = [&plan, begun, set_up = session.on_set_up]() -> Status {
      TRY_STATUS(begun);
      if (set_up) TRY_STATUS(set_up());
      return plan.reader == nullptr ? Status() : plan.reader->on_ready();
    };
  };
  const int status = run_script(std::move(script.script), options_of_recorder(options), e, prepare);
  if (!options.dump.empty() || !recording.recorder) return status;
  if (const Status done = recording.recorder->finish({}); !done) return status == 0 ? complain(done.error()) : status;
  if (plan.reader == nullptr && !options.quiet)
    show_summary(recording.recorder->writer(), plan.path, recording.ring ? &*recording.ring : nullptr);
  return status;
}

}  // namespace espy::cli
