#include "runtime/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/end_request.h"
#include "base/limits.h"
#include "base/strings.h"
#include "kernel/functions.h"
#include "runtime/child.h"
#include "runtime/cost_meter.h"
#include "runtime/losses.h"
#include "runtime/process_watch.h"
#include "runtime/run_monitor.h"
#include "runtime/test_runner.h"

namespace espy::runtime {

namespace {

using Phase = spec::Provider::Phase;

// The interval at which the rings are polled: the shortest after records, then doubled up to the longest. A ring must
// hold what a burst writes in the longest: five million records a second of 50 bytes are 2.5 MB in 10 ms.
constexpr int kShortestPollMs = 1;
constexpr int kLongestPollMs = 10;
// What may be played of a recording that is made, after a signal: more of it may wait than can be shown at once.
constexpr std::chrono::milliseconds kMostPlayingAtEnd{500};

// A print of a map each second needs as much memory each time. Given back and taken again, it costs a fifth of the
// print. See mallopt(3).
void keep_freed_memory() {
  constexpr int kKeptBytes = 4 << 20;
  ::mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  ::mallopt(M_MMAP_THRESHOLD, kKeptBytes);
}

// How to make a runtime write its perf map.
struct JitRuntime {
  std::string_view program;
  std::string_view how;
};
constexpr JitRuntime kJitRuntimes[] = {
    {"java",
     "`jcmd PID Compiler.perfmap` writes it while the program runs (JDK 17); for whole stacks start it with "
     "-XX:+PreserveFramePointer"},
    {"node", "start it with --perf-basic-prof"},
    {"dotnet", "start it with DOTNET_PerfMapEnabled=1"},
    {"ruby", "start it with --yjit-perf"},
};

std::string jit_hint(const symbols::Symbolizer::UnnamedJit& jit) {
  std::string how = "make the runtime write it";
  for (const JitRuntime& runtime : kJitRuntimes)
    if (jit.program.starts_with(runtime.program)) how = runtime.how;
  if (const size_t at = how.find("PID"); at != how.npos) how.replace(at, 3, std::to_string(jit.pid));
  return fmt::format(
      "WARNING: no names for JIT code of {} (process {})\n"
      "  hint: espy reads the names from {}; {}\n",
      jit.program.empty() ? "a JIT compiler" : printable_line(jit.program), jit.pid, jit.perf_map_path, how);
}

}  // namespace

Session::Session(const RunParts& parts, SessionOptions options)
    : machine_(parts.machine),
      program_(parts.program),
      config_(parts.config),
      sink_(parts.sink),
      out_(parts.out),
      options_(std::move(options)),
      control_(machine_, program_),
      unwind_tables_(machine_, program_),
      unwound_stacks_(machine_, program_, parts.types),
      processes_(parts.symbols),
      context_(parts, {unwind_tables_, unwound_stacks_, control_}, options_.shown.stack_detail),
      events_(machine_, program_, parts.registry, context_, options_.tap),
      probes_(machine_, program_, parts.registry, config_),
      costs_(parts, options_) {
  context_.decoder().show_on(options_.shown.terminal);
  context_.before_commands([this] { end_batch(); });
  context_.tell_seen_share([this](program::ScriptMapId map) { return costs_.seen_share(map); });
}

Result<int> Session::run() {
  sink_.begin(run_info());
  return config_.runs_tests || config_.runs_benchmarks ? run_tests() : run_script();
}

Result<int> Session::run_tests() {
  const std::unique_ptr<Capture> capture = TRY(Capture::make(text_style(config_)));
  TestRunner runner(machine_, probes_, events_, control_, context_, *capture, sink_);
  TRY_STATUS(runner.begin());
  const size_t failed = config_.runs_tests ? TRY(runner.run_tests()) : 0;
  if (config_.runs_benchmarks) TRY_STATUS(runner.run_benchmarks());
  TRY_STATUS(runner.end());
  out_.flush();
  TRY_STATUS(out_.status());
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

Result<int> Session::run_script() {
  signals_.emplace(probes_.has_signal_probes(), options_.on_hangup != nullptr);
  control_.start_clock();
  const bool is_simulated = options_.replay.next_event != nullptr;  // without processes
  if (!is_simulated) processes_.start(program_, config_);
  if (!is_simulated && unwind_tables_.are_wanted()) start_unwinding();
  if (options_.is_dry_run)
    control_.stop_programs();
  else
    TRY_STATUS(probes_.run_phase(Phase::kBegin));
  const bool has_events = probes_.has_attached_probes() || options_.on_attached;
  const bool attaches = has_events && (options_.is_dry_run || !control_.has_exit_flag());
  const uint64_t attach_begin_ns = machine_.now_ns();
  const Status attached = attaches ? attach_probes() : Status();
  if (attached && options_.on_set_up) TRY_STATUS(options_.on_set_up());
  if (attached) show_attached();
  context_.spans().hide(attach_begin_ns, machine_.now_ns());
  // Those of begin, behind the number of probes. Without on_set_up, system() may be of another user than --user says.
  if (attached || !options_.on_set_up) events_.drain_present();
  if (!attached) {
    out_.flush();
    return tl::unexpected<Error>(attached.error());
  }
  if (attaches) keep_freed_memory();
  const Status handled = attaches ? catch_out_of_memory([&] { return handle_events(); }) : Status();
  notify_manager("STOPPING=1");
  for (RunServer* server : options_.shown.servers) server->stop();
  const Status finished = finish();
  if (!options_.is_dry_run && !options_.replay.next_event) probed_files_.look();
  const Status recorded = finish_tap();
  for (RunServer* server : options_.shown.servers) server->end(*this);
  bool is_good = false;
  const Status reported = catch_out_of_memory([&]() -> Status {
    is_good = report_losses();
    sink_.finish();
    return {};
  });
  out_.flush();
  for (const Status& part : {handled, finished, recorded, reported}) TRY_STATUS(part);
  TRY_STATUS(out_.status());
  const int status = control_.exit_status() & 0xff;  // of exit(256), too
  return is_good || status != 0 ? status : EXIT_FAILURE;
}

// What a replay of the recording has to know.
Status Session::finish_tap() {
  if (options_.tap == nullptr) return {};
  std::vector<std::string> reasons = make_loss_report(machine_, program_, user_losses()).reasons_beside_records();
  if (!options_.left_out_by_filter.empty()) reasons.push_back(options_.left_out_by_filter);
  return options_.tap->finish(reasons);
}

void Session::show_attached() {
  if (is_end_requested()) machine_.forget_skipped_probes();
  warn_of_missing_probes();
  sink_.attached(program_.probes.size() - machine_.skipped_probes().size());
  notify_manager("READY=1\nSTATUS=Tracing");
}

void Session::end_batch() {
  sink_.batch_end();
  out_.batch_end();
  look_for_hangup();
}

void Session::look_for_hangup() {
  if (signals_ && signals_->take_hangup()) options_.on_hangup();
}

// What is simulated is the same in each run.
output::RunInfo Session::run_info() {
  output::RunInfo info;
  info.now_ns = [this] { return machine_.now_ns(); };
  info.wall_ns = [this](uint64_t boot_ns) {
    const auto offset = machine_.wall_clock_offset_ns();
    return boot_ns + static_cast<uint64_t>(offset ? *offset : wall_clock_offset_ns(CLOCK_BOOTTIME));
  };
  const bool is_simulated = options_.replay.next_event != nullptr;
  info.random = [is_simulated, number = machine_.now_ns()]() mutable {
    if (is_simulated || ::getrandom(&number, sizeof(number), 0) != sizeof(number)) ++number;
    return number;
  };
  info.host = [is_simulated] {
    utsname names = {};
    return is_simulated || ::uname(&names) != 0 ? std::string("localhost") : std::string(names.nodename);
  };
  return info;
}

void Session::start_unwinding() {
  unwind_tables_.on_read([this] { processes_.drain(); });
  unwind_tables_.begin();
  for (const program::Probe& probe : program_.probes)
    if (probe.target.find('/') != probe.target.npos) unwind_tables_.add_program(probe.target);
  if (!options_.tracee.child_program.empty()) unwind_tables_.add_program(options_.tracee.child_program);
  for (const uint32_t pid : options_.tracee.unwound_pids) unwind_tables_.add_process(pid);
  for (const spec::TracedProcess& process : config_.tracee.processes) unwind_tables_.add_process(process.pid);
  if (!unwinds_any_process()) return;
  unwind_tables_.add_program("libc.so.6");  // nearly every process makes its system calls there
  unwind_tables_.add_running_processes();
}

bool Session::unwinds_any_process() const {
  const auto unwinds = [&](program::ProgramId id) {
    return std::ranges::any_of(program_.loss_counters, [&](const program::LossCounter& counter) {
      return counter.program == id && counter.kind == program::LossKind::kGuess;
    });
  };
  const auto is_in_program = [](const program::Probe& probe) {
    return probe.target.find('/') != probe.target.npos && probe.target.find(".so") == probe.target.npos;
  };
  return config_.tracee.processes.empty() && std::ranges::any_of(program_.probes, [&](const program::Probe& probe) {
           return !is_in_program(probe) && unwinds(probe.program);
         });
}

Status Session::attach_probes() {
  // Thousands of probes take seconds, in which a signal ends the run, too.
  Progress* progress = options_.shown.progress;
  if (progress != nullptr)
    progress->begin([this] {
      return fmt::format("attaching {} probes: {} attachments so far", program_.probes.size(),
                         machine_.attached_count());
    });
  machine_.cancel_attaching_when([progress] {
    if (progress != nullptr) progress->tick();
    return is_end_requested();
  });
  if (options_.cost.budget_cpus > 0) machine_.keep_attachments();
  if (options_.cost.is_checked) close_gates(machine_, program_);
  Status attached = attach_followers();
  if (attached) attached = probes_.attach();
  if (progress != nullptr) progress->end();
  if (!attached && !is_end_requested()) return attached;
  if (!options_.cost.is_checked || is_end_requested()) return {};
  // What keeps a budget need not be accepted.
  const bool is_accepted = config_.counting.accepts_cost || options_.cost.budget_cpus > 0;
  return check_cost(machine_, program_, options_.cost.hooks, is_accepted, sink_);
}

std::vector<uint32_t> Session::traced_pids() const {
  std::vector<uint32_t> out;
  for (const spec::TracedProcess& process : config_.tracee.processes) out.push_back(process.pid);
  return out;
}

// Their unwind tables are mostly those of the process, which are read already.
Status Session::attach_followers() {
  TRY_STATUS(probes_.attach_followers());
  if (!program_.following.processes.valid() || config_.tracee.processes.empty() || options_.tracee.follows_new_only)
    return {};
  if (config_.tracee.pid_namespace) {
    sink_.message("runtime_error",
                  "existing children of the process are not traced, because espy is in a pid namespace", "", 0, 0, 0);
    return {};
  }
  const std::vector<uint32_t> pids = traced_pids();
  const std::vector<uint32_t> children = TRY(follow_existing_children(machine_, program_, pids));
  if (unwind_tables_.are_wanted())
    for (const uint32_t child : children) unwind_tables_.add_process(child);
  if (!children.empty())
    sink_.explain("also traces " +
                  output::counted(children.size(),
                                  fmt::format("process(es) that {} {} already started (--follow-new skips them)\n",
                                              fmt::join(pids, ", "), pids.size() == 1 ? "has" : "have")));
  return {};
}

void Session::warn_of_missing_probes() {
  if (config_.missing_probes != spec::MissingProbes::kWarn) return;
  for (const load::Machine::SkippedProbe& each : machine_.skipped_probes())
    if (each.is_named)
      sink_.message("runtime_error", fmt::format("cannot attach to {}: {}", each.name, each.reason), "", 0, 0, 0);
}

Status Session::handle_events() {
  end_batch();
  if (options_.is_dry_run) return {};
  if (options_.replay.next_event == nullptr) costs_.start();
  // A signal of the terminal ends also the command that waits.
  if (options_.on_attached && !is_end_requested())
    if (const Status started = options_.on_attached(); !started && !is_end_requested()) return started;
  if (options_.replay.next_event) return play_events();
  return drain_until_over();
}

Status Session::play_events() {
  // A recording that grows while it is played has its end when the run has.
  Progress* progress = options_.replay.is_waiting ? nullptr : options_.shown.progress;
  uint64_t count = 0;
  if (progress != nullptr) progress->begin([&count] { return fmt::format("replaying: {} events", count); });
  Status played;
  // CPU time, so that a busy machine does not cut off what the recorder has still to write.
  std::optional<std::chrono::nanoseconds> end_request_cpu;
  const auto is_ended = [&] {
    if (!is_end_requested()) return false;
    if (!options_.replay.is_waiting) return true;
    if (!end_request_cpu) end_request_cpu = thread_cpu_time();
    return thread_cpu_time() - *end_request_cpu >= kMostPlayingAtEnd;
  };
  const auto is_over = [&] { return control_.is_exit_requested() || !out_.status() || is_ended(); };
  while (!is_over()) {
    const Result<bool> has_played = options_.replay.next_event();
    if (!has_played) played = tl::unexpected<Error>(has_played.error());
    if (!has_played || !*has_played) break;
    events_.drain_all();
    if (options_.replay.is_waiting && options_.replay.is_waiting()) end_batch();
    look_for_hangup();
    ++count;
    if (progress != nullptr) progress->tick();
  }
  if (progress != nullptr) progress->end();
  if (options_.replay.on_played) gaps_ = options_.replay.on_played();
  return played;
}

Status Session::drain_until_over() {
  RunMonitor monitor(machine_, program_, probes_, *signals_);
  std::vector<uint32_t> pids = traced_pids();
  if (options_.tracee.child_pid != 0) pids.push_back(options_.tracee.child_pid);
  TRY_STATUS(monitor.start(pids));
  if (!options_.tracee.watched_directory.empty())
    TRY_STATUS(monitor.watch_directory(options_.tracee.watched_directory));
  for (RunServer* server : options_.shown.servers) TRY_STATUS(monitor.serve(*server, *this));
  for (const int fd : processes_.descriptors()) TRY_STATUS(monitor.wake_by(fd));
  if (monitor.is_over()) return {};
  FirstLosses losses(machine_, program_, sink_);
  int poll_ms = kShortestPollMs;
  uint64_t next_look_ns = 0;  // for followed processes, also while records come all the time
  bool reads_symbols_ahead = takes_kernel_stacks();
  while ((!control_.is_exit_requested() || monitor.runs_iterator()) && out_.status()) {
    const bool polls = program_.ring.valid() || monitor.polls_followed_processes() || reads_symbols_ahead;
    TRY_STATUS(monitor.wait(events_.has_more() ? 0 : costs_.shorter(polls ? poll_ms : losses.longest_wait_ms())));
    costs_.tick();
    losses.look();
    processes_.drain();
    const size_t count = events_.drain();
    end_batch();
    if (options_.tap != nullptr) TRY_STATUS(options_.tap->batch_end());
    if (events_.is_out_of_memory()) return fail_out_of_memory();
    if (monitor.is_over()) break;
    if (!events_.has_more()) TRY_STATUS(unwound_stacks_.collect(machine_.now_ns()));
    if (count == 0 || monotonic_ns() >= next_look_ns) {
      if (monitor.polls_followed_processes() && !monitor.has_followed_process()) break;
      next_look_ns = monotonic_ns() + kLongestPollMs * uint64_t{1'000'000};
    }
    if (count > 0) {
      poll_ms = kShortestPollMs;
      continue;
    }
    processes_.forget_ended();
    if (control_.has_exit_flag() && !monitor.runs_iterator()) break;
    poll_ms = unwind_tables_.read_ahead() ? kShortestPollMs : std::min(poll_ms * 2, kLongestPollMs);
    // The kernel's symbols take tens of milliseconds: read them while idle, not while the user waits for the end.
    if (reads_symbols_ahead) reads_symbols_ahead = context_.symbols().read_kernel_ahead();
  }
  return {};
}

bool Session::takes_kernel_stacks() {
  const types::Types& types = context_.decoder().context().types;
  return std::ranges::any_of(program_.stacks,
                             [&](const auto& stacks) { return types[stacks.type].kind == types::Kind::kKernelStack; });
}

// What remains to be shown is worth more than the error: it is kept, and each part is tried.
Status Session::finish() {
  Status first;
  const auto attempt = [&](auto&& part) {
    if (Status done = catch_out_of_memory(part); !done && first) first = std::move(done);
  };
  look_for_hangup();  // the last output is the longest
  costs_.stop();
  control_.stop_programs();
  const uint64_t stopped_ns = machine_.now_ns();
  processes_.drain();
  machine_.detach_all();
  processes_.drain();
  attempt([&]() -> Status {
    events_.drain_rest();
    context_.let_commands_finish();
    return {};
  });
  if (!options_.is_dry_run) attempt([&] { return probes_.run_phase(Phase::kEnd); });
  attempt([&]() -> Status {
    events_.drain_all();
    context_.spans().close(stopped_ns);
    sink_.end();
    return {};
  });
  events_.note_unfinished();
  if (options_.shown.progress != nullptr) options_.shown.progress->begin([] { return "reading symbols"; });
  if (config_.print.maps_on_exit) attempt([&] { return print_maps(); });
  if (options_.shown.progress != nullptr) options_.shown.progress->end();
  return first && events_.is_out_of_memory() ? fail_out_of_memory() : first;
}

Status Session::print_maps() {
  std::map<std::string_view, program::ScriptMapId> by_name;
  for (const program::ScriptMapId id : program_.script_maps.ids()) by_name.emplace(program_.script_maps[id].name, id);
  Status first;
  for (const auto& [name, id] : by_name) {
    const Status printed = catch_out_of_memory([&, map = id]() -> Status {
      context_.print_map(map, 0, 0);
      return {};
    });
    if (printed) continue;
    first = printed;
    sink_.message("runtime_error", fmt::format("not enough memory to print the map {}", name), "", 0, 0, 0);
  }
  return first;
}

UserLosses Session::user_losses() {
  std::vector<std::string> others;
  if (const uint64_t lost = processes_.lost_events(); lost > 0)
    others.push_back(
        output::counted(lost, "process event(s) lost: addresses of short-lived processes may have no names"));
  return {events_.lost_records(),
          events_.dropped_by_program(),
          options_.replay.next_event
              ? 0
              : events_.unfinished_records(),  // a simulated program that was stopped runs no more
          events_.unfinished_by_program(),
          events_.unhandled_by_program(),
          context_.decoder().truncated_strings(),
          events_.truncated_by_program(),
          [this](program::ProgramId id) { return costs_.skipped(id); },
          probed_files_.changes(),
          gaps_,
          context_.symbols().uncertain_addresses(),
          std::move(others)};
}

// Reports what was lost. False if --strict makes the run fail for it.
bool Session::report_losses() {
  const auto send = [&](std::string_view kind, std::string_view text) { sink_.message(kind, text, "", 0, 0, 0); };
  const UserLosses losses = user_losses();
  const output::LossReport loss_report = make_loss_report(machine_, program_, losses);
  espy::runtime::report_losses(machine_, program_, losses, loss_report, context_.sources(), config_, sink_);
  for (const std::string& change : probed_files_.changes()) send("runtime_error", printable_line(change));
  for (const std::string& gap : gaps_.sentences) send("runtime_error", gap);
  if (const uint64_t cut = context_.cut_files(); cut > 0)
    send("runtime_error", output::counted(cut, fmt::format("file(s) truncated by cat() (raise max_cat_bytes = {})",
                                                           config_.limits.max_cat_bytes)));
  if (const uint64_t cut = context_.cut_commands(); cut > 0)
    send("runtime_error",
         output::counted(cut, fmt::format("command output(s) truncated by system() (raise max_system_bytes = {})",
                                          config_.limits.max_system_bytes)));
  if (const uint64_t refused = unwind_tables_.refused_files(); refused > 0)
    send("runtime_error",
         output::counted(refused, fmt::format("file(s) without room for unwind tables: stacks follow frame "
                                              "pointers there (raise unwind_table_rows = {} to {})",
                                              config_.limits.unwind_table_rows, unwind_tables_.needed_rows())));
  if (const uint64_t missed = context_.symbols().missed_processes(); missed > 0)
    send("runtime_error", output::counted(missed, "process(es) ended before espy could name their addresses"));
  if (loss_report.uncertain_addresses > 0) send("runtime_error", loss_report.uncertain_sentence());
  if (const size_t closed = context_.symbols().closed_processes(); closed > 0)
    send("runtime_error",
         output::counted(
             closed,
             "process(es) could not be read, because CAP_SYS_PTRACE is missing: addresses may have no names, and "
             "stacks may be short"));
  if (context_.symbols().has_hidden_kernel())
    send("runtime_error", "kernel addresses have no names: " + kernel::why_addresses_are_hidden());
  if (const auto& reasons = context_.symbols().skipped_files().reasons; !reasons.empty())
    send("runtime_error",
         output::counted(reasons.size(),
                         fmt::format("file(s) not read for the names of addresses ({}{})",
                                     printable_line(*reasons.begin()), reasons.size() > 1 ? ", ..." : "")));
  if (const auto& jit = context_.symbols().unnamed_jit()) sink_.explain(jit_hint(*jit));
  if (costs_.unavoidable_cpus() > 0)
    send("runtime_error", fmt::format("budget exceeded: reaching the probes takes {} of a CPU, even while they are off",
                                      output::percent_text(costs_.unavoidable_cpus())));
  if (options_.shown.has_loss_report) sink_.loss_report(loss_report);
  costs_.report();
  if (!options_.is_strict) return true;
  if (const std::string unknown = loss_report.unknown(); !unknown.empty()) send("runtime_error", unknown);
  std::string reason = loss_report.inexact();
  if (reason.empty()) reason = options_.left_out_by_filter;
  if (reason.empty()) return true;
  send("errorf", "output is not exact: " + printable_line(reason));
  return false;
}

}  // namespace espy::runtime
