#include "run/replay_host.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/end_request.h"
#include "base/strings.h"
#include "kernel/described_kernel.h"
#include "output/loss_report.h"
#include "recording/reader.h"
#include "replay/player.h"
#include "replay/probes.h"
#include "runtime/resolver.h"
#include "simulator/simulator.h"

namespace espy::run {

namespace {

// What the simulator lacks, or needs types of the kernel for. Programs do without.
bool has_feature(kernel::Feature feature) {
  using kernel::Feature;
  constexpr Feature kMissing[] = {Feature::kTpBtf,
                                  Feature::kFentry,
                                  Feature::kKprobe,
                                  Feature::kKprobeMulti,
                                  Feature::kKprobeSession,
                                  Feature::kFprobeGraph,
                                  Feature::kUprobeMulti,
                                  Feature::kUprobeSession,
                                  Feature::kRdonlyCastVoid,
                                  Feature::kRdonlyCastTyped,
                                  Feature::kOpenCodedIterators,
                                  Feature::kTaskStorage,
                                  Feature::kGetCurrentTaskBtf,
                                  Feature::kStringKfuncs};
  return std::ranges::find(kMissing, feature) == std::end(kMissing);
}

// A run over a recording. Shared by the functions of its host.
struct Replay {
  std::optional<recording::Reader> reader;
  std::optional<replay::RecordedProviders> providers;
  simulator::Simulator* machine = nullptr;
  std::optional<replay::Player> player;
  bool is_at_end = false;  // all events of the recording were played
};

// What is missing in the part that was read, which is the whole if `is_at_end`.
output::RecordingGaps gaps_of(const recording::Reader& reader, bool is_at_end) {
  output::RecordingGaps gaps{reader.lost_count(), {}};
  if (reader.lost_count() > 0)
    gaps.sentences.push_back(output::counted(reader.lost_count(), "event(s) lost while they were recorded"));
  for (const std::string& each : reader.incomplete())
    gaps.sentences.push_back("while the events were recorded: " + printable_line(each));
  gaps.sentences.insert(gaps.sentences.end(), reader.damages().begin(), reader.damages().end());
  if (is_at_end && !reader.is_complete())
    gaps.sentences.emplace_back("the recording was cut off: its last events may be missing");
  return gaps;
}

Status check_replay_options(const RunOptions& options) {
  const bool has_group = !options.tracee.cgroup.empty() || !options.tracee.container.empty();
  if (!options.config.tracee.processes.empty() || !options.config.tracee.thread_names.empty() ||
      options.tracee.command || options.config.tracee.follows || has_group || !options.user.empty())
    return fail("-i takes its events from a file: -p, -c, --follow, --comm, --cgroup and --user have no meaning there",
                0, "a predicate chooses a process: /pid == 1234/");
  if (options.replay.from_ns > options.replay.to_ns) return fail("--from is after --to: that leaves no time");
  return {};
}

Result<std::unique_ptr<Environment>> open(Replay& replay, const RunOptions& options) {
  replay.reader = TRY(recording::Reader::open(options.replay.files));
  const recording::Description& description = replay.reader->description();
  const uint64_t begin_ns = description.started_ns;
  const bool has_end = options.replay.to_ns < UINT64_MAX - begin_ns;
  replay.reader->select_time(options.replay.from_ns == 0 ? 0 : begin_ns + options.replay.from_ns,
                             has_end ? begin_ns + options.replay.to_ns : UINT64_MAX);
  if (kernel::find_arch(description.arch) == nullptr)
    return fail(
        fmt::format("{} is of a CPU that this espy does not know: `{}`", options.replay.files[0], description.arch));
  auto machine = std::make_unique<simulator::Simulator>();
  replay.machine = machine.get();
  auto environment =
      make_environment(options, std::move(machine), kernel::make_described_kernel(description, has_feature));
  environment->config.tracee.has_child = description.child_pid != 0;
  environment->config.tracee.child_pid = description.child_pid;
  environment->config.tracee.pid_namespace.reset();  // the ids are those that were recorded
  const spec::Registry& all = environment->registry;
  replay.providers.emplace(all.providers());
  environment->registry = spec::Registry({all.families().begin(), all.families().end()}, replay.providers->rows());
  return environment;
}

// The error of the player, with its place in the script.
Status explain(const Replay& replay, const Environment& environment, const RunOptions& options, Status done) {
  if (done || !replay.player->missing()) return done;
  const replay::Missing& missing = *replay.player->missing();
  source::Diagnostics diagnostics;
  diagnostics.error("not-recorded", missing.span, missing.sentence, missing.hint);
  report(diagnostics, environment.sources, options);
  return fail("the script needs more than was recorded");
}

Result<bool> play(Replay& replay, const Environment& environment, const RunOptions& options) {
  auto more = replay.player->next();
  replay.is_at_end = more && !*more;
  TRY_STATUS(explain(replay, environment, options, more ? Status() : tl::unexpected(more.error())));
  return more;
}

}  // namespace

Host replay_host() { return following_host({}); }

Host following_host(const Following& following) {
  const auto replay = std::make_shared<Replay>();
  const auto shown = std::make_shared<RunOptions>();
  Host host;
  host.check_can_run = check_replay_options;
  host.open = [replay, shown, following](const RunOptions& options) {
    *shown = options;
    auto environment = open(*replay, options);
    if (environment && following.wait) replay->reader->follow(following.wait);
    return environment;
  };
  host.prepare = [replay, shown, following](const program::Program& program, Environment& e,
                                            runtime::SessionOptions& session) {
    const auto timer_of = [&registry = e.registry](const program::Probe& probe) {
      return registry.find_provider(probe.provider)->timer;
    };
    replay->player.emplace(*replay->reader, *replay->machine, program, *e.kernel, e.types, timer_of);
    session.replay.next_event = [replay, shown, following, &e] {
      auto more = play(*replay, e, *shown);
      if (more && !*more && following.on_end) following.on_end();
      return more;
    };
    session.replay.on_played = [replay, shown, is_live = bool{following.wait}] {
      replay->player->leave();
      output::RecordingGaps gaps = gaps_of(*replay->reader, replay->is_at_end);
      if (is_live && is_end_requested() && !replay->is_at_end)
        gaps.sentences.push_back(fmt::format(
            "events that were recorded before the end are not shown: `espy -i {}` shows all", shown->replay.files[0]));
      return gaps;
    };
    if (!following.wait) return;
    session.replay.is_waiting = [replay] { return replay->reader->is_paused(); };
    session.on_set_up = [replay, shown, following, &e] {
      const Status can_run = explain(*replay, e, *shown, replay->player->check(true));
      return can_run ? following.on_checked() : can_run;
    };
  };
  return host;
}

source::Diagnostic as_of_recording(source::Diagnostic diagnostic) {
  if (diagnostic.id != "no-btf") return diagnostic;
  diagnostic.message = "this needs the types of the kernel, which were not recorded";
  diagnostic.hint = "";
  return diagnostic;
}

Status show_recording(const std::vector<std::string>& paths) {
  recording::Reader reader = TRY(recording::Reader::open(paths));
  const recording::Description& description = reader.description();
  std::vector<uint64_t> counts(description.probes.size());
  uint64_t total = 0;
  recording::Event event;
  while (reader.next(event)) {
    ++counts[event.probe];
    ++total;
  }
  const double seconds = reader.last_ns() < description.started_ns
                             ? 0
                             : static_cast<double>(reader.last_ns() - description.started_ns) / 1e9;
  std::string out =
      fmt::format("\nrecorded {} for {:.3f} s on Linux {} ({}, {} CPUs), by: {}\nevents: {}\n",
                  runtime::format_time("%Y-%m-%d %H:%M:%S", description.started_wall_ns, CLOCK_REALTIME), seconds,
                  description.kernel_release, description.arch, description.cpu_count, description.command, total);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) out += fmt::format("{:>12} {}\n", counts[i], description.probes[i].name);
  std::fputs(printable(out).c_str(), stdout);
  for (const std::string& gap : gaps_of(reader, true).sentences)
    std::fputs(printable("WARNING: " + gap + "\n").c_str(), stderr);
  return {};
}

}  // namespace espy::run
