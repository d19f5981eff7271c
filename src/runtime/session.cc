#include "runtime/session.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/fd.h"
#include "base/strings.h"
#include "program/ring.h"
#include "runtime/loss_report.h"
#include "runtime/map_reader.h"
#include "runtime/notify.h"
#include "runtime/resolver.h"
#include "runtime/ring.h"

namespace espy::runtime {

namespace {

// How long the loop sleeps between looks at the rings: at once back to the shortest when there was something.
// A burst after the longest sleep must find room: at five million records a second of 50 bytes, 10 ms fill 2.5 MB.
constexpr int kBusyPollMs = 1;
constexpr int kIdlePollMs = 10;
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
constexpr int kSameSignalUs = 300'000;
constexpr size_t kDrainBatch = 65536;  // records between two looks at signals

// Which signal has come; 0 if none.
uint32_t take_signal(int signal_fd) {
  signalfd_siginfo info = {};
  return ::read(signal_fd, &info, sizeof(info)) == sizeof(info) ? info.ssi_signo : 0;
}

// Programs that nothing in the kernel fires: the session runs them when SIGUSR1 comes.
bool is_on_signal(const spec::Provider& provider) {
  return provider.phase == spec::Provider::Phase::kAttached && provider.attach == nullptr;
}

bool is_edge(const spec::Provider& provider) { return provider.phase != spec::Provider::Phase::kAttached; }

bool is_ending_signal_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return std::ranges::any_of(kEndingSignals, [&](int signal) { return ::sigismember(&pending, signal) == 1; });
}

OwnedFd open_pidfd(uint32_t pid) { return OwnedFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

// Signals that end the run, as a descriptor; blocked while it lives.
class SignalFd {
 public:
  explicit SignalFd(bool with_user_signal) {
    sigemptyset(&set_);
    for (const int signal : kEndingSignals) sigaddset(&set_, signal);
    if (with_user_signal) sigaddset(&set_, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    fd_ = OwnedFd(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;
  ~SignalFd() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  int get() const { return fd_.get(); }
  // From here on a second Ctrl-C quits at once; but not one that came with the first: timeout(1) and sudo(8) send their
  // child a signal that the terminal has sent it already.
  void let_second_quit() {
    for (const int signal : kEndingSignals) ::signal(signal, SIG_IGN);
    ::signal(SIGALRM, [](int) {
      for (const int signal : kEndingSignals) ::signal(signal, SIG_DFL);
    });
    itimerval grace = {};
    grace.it_value.tv_usec = kSameSignalUs;
    ::setitimer(ITIMER_REAL, &grace, nullptr);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t set_ = {};
  sigset_t before_ = {};
  OwnedFd fd_;
};

}  // namespace

// ---- What a handler is given ----------------------------------------------------------------------------------------

output::Value EventView::field(size_t index) const {
  return output::decode_field(session_.decode_context(), schema_.fields[index], record_);
}

int64_t EventView::integer(size_t index) const {
  const program::EventField& field = schema_.fields[index];
  const types::Type& type = session_.types()[field.type];
  CHECK(type.size_bytes <= 8 && !field.is_in_tail);
  uint64_t bits = 0;
  std::memcpy(&bits, record_.data() + field.offset_bytes, type.size_bytes);
  const int unused = 64 - 8 * static_cast<int>(type.size_bytes);
  if (unused == 0) return static_cast<int64_t>(bits);
  return type.is_signed ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

std::vector<output::Value> EventView::fields() const {
  std::vector<output::Value> values;
  values.reserve(field_count());
  for (size_t i = 0; i < field_count(); ++i) values.push_back(field(i));
  return values;
}

// What a user can make of it, where that is more than the name of an error.
std::string helper_message(std::string_view helper, int64_t code) {
  if (helper == "map_update_elem" && code == -E2BIG)
    return "Map full; can't update element. Try increasing max_map_keys config or manually setting the max entries in "
           "a "
           "map declaration e.g. `let @a = hash(5000)`";
  if (helper == "map_lookup_elem" && code == 0) return "Can't lookup map element because it does not exist.";
  if (helper == "map_delete_elem" && code == -ENOENT) return "Can't delete map element because it does not exist.";
  return std::strerror(static_cast<int>(-code));
}

void show_helper_error(EventView& event) {
  const source::Sources& sources = event.session().sources();
  const source::Span span = event.schema().span;
  const source::Extent at = sources.extent(span);
  const std::string& helper = event.schema().literals[0];
  const std::string message = helper_message(helper, event.integer(0));
  const std::string excerpt = source::excerpt(span, sources);
  event.session().sink().helper_error(
      {helper, event.integer(0), message, at.source, at.line, at.begin_column, at.end_column, excerpt});
}

Ring make_ring(load::Machine& machine, const program::Program& program) {
  const program::BpfMap& shape = program.maps[program.ring];
  std::function<void(uint32_t)> map_whole;
  if (shape.first_bytes != 0) {
    map_whole = [&machine, ring = program.ring](uint32_t cpu) {
      // The addresses are reserved and the pages are there: this fails only where not even page tables find room.
      CHECK(machine.map_value(ring, cpu));
    };
  }
  return {machine.memory(program.ring), shape.value_size, program.ring_bytes, std::move(map_whole)};
}

output::TextStyle text_style(const spec::Config& config) {
  return {.truncation_trailer = config.str_trunc_trailer,
          .has_zeros = config.print_zeros,
          .is_c = config.print_layout == spec::PrintLayout::kC,
          .max_depth = static_cast<uint32_t>(config.print_depth),
          .max_items = static_cast<uint32_t>(config.print_items),
          .span_layout = config.span_layout};
}

output::SpanFilter span_filter(const spec::Config& config) {
  output::SpanFilter filter{
      static_cast<uint32_t>(config.span_depth), config.span_count, config.span_slower_than_ns, {}};
  for (const std::string_view name : split(config.span_order, ' '))
    if (!name.empty()) filter.order.emplace_back(name);
  return filter;
}

// A number for each function by its probes' indices: its entry and its return have the same. 0 for what is none's.
std::vector<uint32_t> number_functions(const program::Program& program) {
  std::map<std::pair<std::string_view, std::string_view>, uint32_t> numbers;
  std::vector<uint32_t> out;
  for (const program::Probe& probe : program.probes) {
    const auto next = static_cast<uint32_t>(numbers.size() + 1);
    out.push_back(probe.function.empty() ? 0 : numbers.try_emplace({probe.target, probe.function}, next).first->second);
  }
  return out;
}

// ---- The session ----------------------------------------------------------------------------------------------------

struct Session::Impl {
  load::Machine& machine;
  const spec::Registry& registry;
  SessionOptions options;
  Ring ring;
  MapReader maps;
  std::vector<void (*)(EventView&)> handlers;                   // by EventId
  std::vector<std::map<size_t, output::Formatter>> formatters;  // by EventId, then by literal
  std::string text;                                             // of the last `format`
  output::TextStyle style;
  output::CallTrees call_trees;
  std::vector<uint32_t> functions;  // by ProbeId: number_functions()
  uint64_t lost_shown = 0;
  std::map<program::ProgramId, uint64_t> cut_strings_by = {};
  bool exit_requested = false;
  int exit_status = 0;
};

Session::Session(load::Machine& machine, const program::Program& program, const types::Types& types,
                 const source::Sources& sources, const spec::Registry& registry, const spec::Config& config,
                 output::Sink& sink, output::Writer& out, symbols::Symbolizer& symbols, SessionOptions options)
    : sink_(sink),
      out_(out),
      config_(config),
      sources_(sources),
      types_(types),
      program_(program),
      symbols_(symbols),
      unwind_tables_(machine, program),
      resolver_(make_resolver(machine, program, symbols, options.shows_source)),
      cut_strings_{config.max_strlen, 0} {
  const bool has_ring = program.ring.valid();
  impl_ =
      std::make_unique<Impl>(Impl{machine,
                                  registry,
                                  std::move(options),
                                  has_ring ? make_ring(machine, program) : Ring({}, 0, 0),
                                  MapReader(machine, program, decode_context()),
                                  {},
                                  std::vector<std::map<size_t, output::Formatter>>(program.events.size()),
                                  {},
                                  text_style(config),
                                  {span_filter(config), [this](const output::SpanEvent& e) { this->sink().span(e); }},
                                  number_functions(program)});
  for (const program::EventSchema& schema : program.events) {
    if (schema.builtin.empty()) {
      impl_->handlers.push_back(show_helper_error);
      continue;
    }
    const spec::Builtin* builtin = registry.find_builtin(schema.builtin);
    CHECK(builtin != nullptr && builtin->handle != nullptr);
    impl_->handlers.push_back(builtin->handle);
  }
}

Session::~Session() = default;

output::DecodeContext Session::decode_context() {
  return {types_, resolver_, program_.formats, &cut_strings_, config_.print_addresses};
}

const output::Formatter& Session::formatter(const program::EventSchema& schema, size_t literal_index) {
  auto& made = impl_->formatters[static_cast<size_t>(&schema - &*program_.events.begin())];
  if (const auto at = made.find(literal_index); at != made.end()) return at->second;
  auto formatter = output::Formatter::create(schema.literals[literal_index]);
  CHECK(formatter.has_value());  // the checker parsed it before
  return made.emplace(literal_index, std::move(*formatter)).first->second;
}

const std::string& Session::format(const EventView& event, size_t literal_index, size_t first_field) {
  impl_->text.clear();
  formatter(event.schema(), literal_index)
      .append_record(impl_->text, decode_context(), event.schema(), first_field, event.record(), impl_->style);
  return impl_->text;
}

bool Session::wants_spans() const { return !impl_->call_trees.is_full(); }

void Session::span(output::SpanEvent event, size_t probe_index, output::SpanPlace place) {
  if (probe_index < impl_->functions.size()) {
    place.function = impl_->functions[probe_index];
    const program::Probe& probe = program_.probes[program::ProbeId{static_cast<uint32_t>(probe_index)}];
    place.is_entry &= probe.offset == 0;  // one behind the function's beginning is none of its entry
    // Its begin's name will do better, where there is one.
    if (event.kind == output::SpanKind::kExit) event.name = probe.function.empty() ? probe.name : probe.function;
  }
  if (!place.is_entry && !place.is_return) place.frame = 0;
  impl_->call_trees.add(std::move(event), place);
  if (wants_spans()) return;
  request_exit(EXIT_SUCCESS);
  stop_programs();  // there may be many events until the loop comes to it
}

void Session::print_map(program::ScriptMapId map, uint64_t top, uint64_t divisor) {
  auto view = impl_->maps.read(map);
  if (!view) {
    sink().message("runtime_error", view.error().message, "", 0, 0, 0);
    return;
  }
  view->top = top;
  view->divisor = divisor;
  sink().map(*view);
}

void Session::clear_map(program::ScriptMapId map) {
  if (const Status done = impl_->maps.clear(map); !done)
    sink().message("runtime_error", done.error().message, "", 0, 0, 0);
}

void Session::zero_map(program::ScriptMapId map) {
  if (const Status done = impl_->maps.zero(map); !done)
    sink().message("runtime_error", done.error().message, "", 0, 0, 0);
}

void Session::unwatch(uint64_t address) { impl_->machine.detach_watchpoints(address); }

void Session::request_exit(int status) {
  if (impl_->exit_requested) return;
  impl_->exit_requested = true;
  impl_->exit_status = status;
}

void Session::run_command(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) {
    sink().message("runtime_error", fmt::format("cannot run `{}`: {}", command, std::strerror(errno)), "", 0, 0, 0);
    return;
  }
  std::string text;
  char chunk[4096];
  for (size_t got = 0; (got = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) text.append(chunk, got);
  ::pclose(pipe);
  sink().text("syscall", text);
}

namespace {

// One run: the state that lives from begin to the last map.
class Run {
 public:
  Run(Session& session, load::Machine& machine, const spec::Registry& registry, const SessionOptions& options)
      : session_(session), machine_(machine), registry_(registry), options_(options) {}

  const spec::Provider& provider(const program::Probe& probe) const {
    const spec::Provider* found = registry_.find_provider(probe.provider);
    CHECK(found != nullptr);
    return *found;
  }

  bool has_attached_probes() const {
    for (const program::Probe& probe : session_.program().probes)
      if (!is_edge(provider(probe))) return true;
    return false;
  }

  std::vector<const program::Probe*> probes_of(spec::Provider::Phase phase) const {
    std::vector<const program::Probe*> out;
    for (const program::Probe& probe : session_.program().probes)
      if (provider(probe).phase == phase) out.push_back(&probe);
    return out;
  }

  bool has_signal_probes() const {
    return std::ranges::any_of(session_.program().probes,
                               [&](const program::Probe& probe) { return is_on_signal(provider(probe)); });
  }

  Status run_signal_probes() const {
    for (const program::Probe& probe : session_.program().probes)
      if (is_on_signal(provider(probe))) TRY_STATUS(machine_.run(probe.program));
    return {};
  }

  Status run_phase(spec::Provider::Phase phase) const {
    for (const program::Probe& probe : session_.program().probes)
      if (provider(probe).phase == phase) TRY_STATUS(machine_.run(probe.program));
    return {};
  }

  // Program by program, as one program may serve many probes.
  Status attach() const {
    const program::Program& program = session_.program();
    std::map<program::ProgramId, std::vector<program::ProbeId>> by_program;
    for (const program::ProbeId id : program.probes.ids()) {
      const program::Probe& probe = program.probes[id];
      if (!is_edge(provider(probe)) && !is_on_signal(provider(probe))) by_program[probe.program].push_back(id);
    }
    for (const auto& [tracepoint, id] : program.following.programs)
      TRY_STATUS(machine_.attach_raw_tracepoint(id, tracepoint, 0));
    for (const auto& [program_id, probes] : by_program) {
      const program::Probe& first = program.probes[probes.front()];
      spec::AttachRequest request{machine_, program, program_id, probes, session_.config()};
      TRY_STATUS(provider(first).attach(request));
    }
    return {};
  }

 private:
  Session& session_;
  load::Machine& machine_;
  const spec::Registry& registry_;
  const SessionOptions& options_;
};

void watch(int epoll, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

size_t Session::drain() {
  const size_t count = impl_->ring.drain(
      [&](std::span<const std::byte> record) {
        const auto* header = reinterpret_cast<const program::RecordHeader*>(record.data());
        const program::EventId id{header->event_plus_one - 1};
        EventView view(*this, program_.events[id], record);
        const uint64_t cut_before = cut_strings_.count;
        impl_->handlers[id.index](view);
        if (cut_strings_.count > cut_before)
          impl_->cut_strings_by[program_.events[id].program] += cut_strings_.count - cut_before;
      },
      kDrainBatch);
  if (const uint64_t lost = impl_->ring.lost(); lost > impl_->lost_shown) {
    sink().lost(lost - impl_->lost_shown);
    impl_->call_trees.note_losses();
    impl_->lost_shown = lost;
  }
  return count;
}

void Session::drain_all() {
  while (drain() > 0) {
  }
}

// Whether a program called exit() that we have not heard of yet.
bool Session::has_exit_flag() const {
  const auto globals = impl_->machine.memory(program_.globals);
  uint64_t flag = 0;
  if (!globals.empty()) std::memcpy(&flag, globals.data() + program_.exit_flag_offset, sizeof(flag));
  return flag != 0;
}

void Session::stop_programs() {
  const auto globals = impl_->machine.memory(program_.globals);
  if (globals.empty()) return;
  const uint64_t one = 1;
  std::memcpy(globals.data() + program_.exit_flag_offset, &one, sizeof(one));
}

void Session::start_clock() {
  const auto globals = impl_->machine.memory(program_.globals);
  if (globals.empty()) return;
  const uint64_t now_ns = impl_->machine.now_ns();
  std::memcpy(globals.data() + program_.start_offset, &now_ns, sizeof(now_ns));
}

// Makes the tables that are sure to be needed, before the first stack. Where events are played there are no processes.
void Session::start_unwinding() {
  if (!unwind_tables_.are_wanted() || impl_->options.next_event) return;
  unwind_tables_.begin();
  for (const program::Probe& probe : program_.probes)
    if (probe.target.starts_with('/')) unwind_tables_.add_program(probe.target);
  if (!impl_->options.child_program.empty()) unwind_tables_.add_program(impl_->options.child_program);
  for (const uint32_t pid : impl_->options.unwound_pids) unwind_tables_.add_process(pid);
  if (impl_->options.watched_pid) unwind_tables_.add_process(*impl_->options.watched_pid);
}

// Event by event, until there are no more or exit() was called.
Status Session::play(const std::function<Result<bool>()>& next_event) {
  while (!impl_->exit_requested && TRY(next_event())) drain_all();
  return {};
}

bool Session::takes_kernel_stacks() const {
  return std::ranges::any_of(program_.stacks,
                             [&](const auto& stack) { return types_[stack.first].kind == types::Kind::kKernelStack; });
}

bool Session::has_followed_process() {
  bool is_one_alive = false;
  impl_->machine.for_each(program_.following.processes,
                          [&](std::span<const std::byte>, std::span<const std::byte> value) {
                            is_one_alive |= std::ranges::any_of(value, [](std::byte b) { return b != std::byte{}; });
                          });
  return is_one_alive;
}

// Until exit(), a signal, or the end of the watched process, and of those that it started where they are followed.
Status Session::loop(int signal_fd) {
  if (impl_->options.next_event) return play(impl_->options.next_event);
  const OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno("cannot wait for events", errno);
  watch(epoll.get(), signal_fd);
  std::vector<OwnedFd> pidfds;
  for (const uint32_t pid : {impl_->options.child_pid, impl_->options.watched_pid.value_or(0)}) {
    if (pid == 0) continue;
    pidfds.push_back(open_pidfd(pid));
    if (!pidfds.back().valid()) return {};  // it has gone already
    watch(epoll.get(), pidfds.back().get());
  }
  const std::vector<int> iterators = impl_->machine.iterators();
  for (const int walk : iterators) watch(epoll.get(), walk);
  size_t running_iterators = iterators.size();
  bool is_orphaned = false;  // of those that are followed the first has ended
  const bool follows = program_.following.processes.valid();
  // What became readable ends the run, except a walk while others go on, and a process that is followed by others.
  const auto is_end = [&](int fd) {
    const bool is_iterator = std::ranges::find(iterators, fd) != iterators.end();
    if (!is_iterator && (fd == signal_fd || !follows)) return true;
    ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
    is_orphaned |= !is_iterator;
    return is_iterator && --running_iterators == 0;
  };
  int timeout_ms = kBusyPollMs;
  bool reads_ahead = takes_kernel_stacks();
  while (!impl_->exit_requested && out_.status()) {
    epoll_event event = {};
    const bool has_more_to_do = program_.ring.valid() || is_orphaned || reads_ahead;
    const bool is_ready = ::epoll_wait(epoll.get(), &event, 1, has_more_to_do ? timeout_ms : -1) > 0;
    const bool is_signal = is_ready && event.data.fd == signal_fd;
    const bool is_user_signal = is_signal && take_signal(signal_fd) == SIGUSR1;
    if (is_user_signal) TRY_STATUS(Run(*this, impl_->machine, impl_->registry, impl_->options).run_signal_probes());
    const bool is_over = is_ready && !is_user_signal && is_end(event.data.fd);
    const size_t count = drain();
    out_.batch_end();
    // exit() sets the flag besides sending a record, which may have found no room.
    if (is_over || (count == 0 && has_exit_flag())) break;
    if (is_orphaned && count == 0 && !has_followed_process()) break;
    timeout_ms = count > 0 ? kBusyPollMs : std::min(timeout_ms * 2, kIdlePollMs);
    // Reading the kernel's symbols takes tens of milliseconds: at leisure, and not when somebody waits for the end.
    if (reads_ahead && count == 0) reads_ahead = symbols_.read_kernel_ahead();
  }
  return {};
}

// Tells what was lost; with --strict, whether the run may count as good.
bool Session::report_losses() {
  SeenLosses seen{impl_->lost_shown, cut_strings_, impl_->cut_strings_by};
  const output::LossReport loss_report = make_loss_report(impl_->machine, program_, seen);
  show_losses(impl_->machine, program_, seen, loss_report, sink_);
  if (const uint64_t refused = unwind_tables_.refused_files(); refused > 0)
    sink_.message("runtime_error",
                  fmt::format("files whose unwind tables found no room (raise unwind_table_rows = {}): {}",
                              config_.unwind_table_rows, refused),
                  "", 0, 0, 0);
  if (impl_->options.shows_loss_report) sink_.loss_report(loss_report);
  const std::string reason = loss_report.inexact();
  if (!impl_->options.is_strict) return true;
  if (const std::string unknown = loss_report.unknown(); !unknown.empty())
    sink_.message("runtime_error", unknown, "", 0, 0, 0);
  if (reason.empty()) return true;
  sink_.message("errorf", "not all that was shown is exact: " + reason, "", 0, 0, 0);
  return false;
}

// ---- Tests ----------------------------------------------------------------------------------------------------------

void Session::clear_exit() {
  impl_->exit_requested = false;
  impl_->exit_status = 0;
  const auto globals = impl_->machine.memory(program_.globals);
  const uint64_t zero = 0;
  if (!globals.empty()) std::memcpy(globals.data() + program_.exit_flag_offset, &zero, sizeof(zero));
}

output::TestResult Session::judge(const program::Probe& probe, const load::Machine::Measured& measured) {
  // exit(0) is a way to end a test; one that we have heard nothing of was lost with its reason.
  const bool has_quit = impl_->exit_requested ? impl_->exit_status != 0 : has_exit_flag();
  output::TestResult result{.name = probe.function, .duration_ns = measured.average_ns, .output = capture_->take()};
  if (measured.result != 0) result.output += fmt::format("it returned {}\n", static_cast<int32_t>(measured.result));
  if (has_quit && !capture_->has_failed()) result.output += fmt::format("it exited with {}\n", impl_->exit_status);
  result.has_passed = measured.result == 0 && !has_quit && !capture_->has_failed();
  capture_->forget_failure();
  clear_exit();
  return result;
}

Result<size_t> Session::run_tests() {
  const Run run(*this, impl_->machine, impl_->registry, impl_->options);
  const auto probes = run.probes_of(spec::Provider::Phase::kTest);
  std::vector<output::TestResult> results;
  sink_.tests_begin(probes.size());
  for (const program::Probe* probe : probes) {
    sink_.test_begin(probe->function);
    const load::Machine::Measured measured = TRY(impl_->machine.measure(probe->program, 1));
    drain_all();
    results.push_back(judge(*probe, measured));
    sink_.test_end(results.back());
  }
  sink_.tests_end(results);
  return static_cast<size_t>(std::ranges::count(results, false, &output::TestResult::has_passed));
}

// As often as fits some milliseconds, a part at a time, so that the rings do not overflow.
Status Session::run_benchmarks() {
  constexpr uint64_t kPart = 500, kTotalNs = 20'000'000, kShortestNs = 500;
  const Run run(*this, impl_->machine, impl_->registry, impl_->options);
  const auto probes = run.probes_of(spec::Provider::Phase::kBench);
  if (!probes.empty()) sink_.benchmarks_begin();
  for (const program::Probe* probe : probes) {
    const uint64_t about_ns = TRY(impl_->machine.measure(probe->program, kPart)).average_ns;
    const uint64_t parts = std::clamp<uint64_t>(kTotalNs / std::max(about_ns, kShortestNs) / kPart, 1, 100);
    uint64_t sum_ns = 0;
    for (uint64_t i = 0; i < parts; ++i) {
      drain_all();
      clear_exit();
      sum_ns += TRY(impl_->machine.measure(probe->program, kPart)).average_ns;
    }
    drain_all();
    capture_->take();
    clear_exit();
    sink_.benchmark(probe->function, sum_ns / parts, parts * kPart);
  }
  return {};
}

Result<int> Session::run() {
  const Run run(*this, impl_->machine, impl_->registry, impl_->options);
  if (config_.runs_tests || config_.runs_benchmarks) {
    capture_ = TRY(Capture::make(impl_->style));
    TRY_STATUS(run.run_phase(spec::Provider::Phase::kBegin));
    drain_all();
    capture_->take();
    const size_t failed = config_.runs_tests ? TRY(run_tests()) : 0;
    if (config_.runs_benchmarks) TRY_STATUS(run_benchmarks());
    TRY_STATUS(run.run_phase(spec::Provider::Phase::kEnd));
    drain_all();
    out_.flush();
    TRY_STATUS(out_.status());
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  SignalFd signals(run.has_signal_probes());
  start_clock();
  start_unwinding();
  TRY_STATUS(run.run_phase(spec::Provider::Phase::kBegin));
  const bool is_attached = run.has_attached_probes() && !has_exit_flag();
  const uint64_t attaching_ns = impl_->machine.now_ns();
  // Who loses patience while thousands of probes are attached gets the prompt back, too.
  impl_->machine.cancel_attaching_when(is_ending_signal_pending);
  if (const Status done = is_attached ? run.attach() : Status(); !done && !is_ending_signal_pending())
    return tl::unexpected(done.error());
  if (is_ending_signal_pending()) impl_->machine.forget_skipped_probes();
  impl_->call_trees.hide(attaching_ns, impl_->machine.now_ns());
  sink_.attached(program_.probes.size());
  notify_manager("READY=1\nSTATUS=Tracing");
  drain_all();  // what begin said comes behind that
  if (is_attached) {
    out_.batch_end();
    if (!impl_->options.is_dry_run) {
      if (impl_->options.on_attached) TRY_STATUS(impl_->options.on_attached());
      TRY_STATUS(loop(signals.get()));
    }
  }
  notify_manager("STOPPING=1");
  signals.let_second_quit();
  stop_programs();
  const uint64_t stopped_ns = impl_->machine.now_ns();
  impl_->machine.detach_all();
  drain_all();
  TRY_STATUS(run.run_phase(spec::Provider::Phase::kEnd));
  drain_all();
  impl_->call_trees.close(stopped_ns);
  sink_.end();
  if (config_.print_maps_on_exit) {
    for (const auto& [name, id] : maps_by_name()) print_map(id, 0, 0);
  }
  const bool is_good = report_losses();
  sink_.finish();
  out_.flush();
  TRY_STATUS(out_.status());
  return is_good || impl_->exit_status != 0 ? impl_->exit_status : EXIT_FAILURE;
}

std::map<std::string_view, program::ScriptMapId> Session::maps_by_name() const {
  std::map<std::string_view, program::ScriptMapId> out;
  for (const program::ScriptMapId id : program_.script_maps.ids()) out.emplace(program_.script_maps[id].name, id);
  return out;
}

}  // namespace espy::runtime
