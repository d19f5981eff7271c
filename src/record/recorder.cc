#include "record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/byte_reader.h"
#include "base/clock.h"
#include "base/end_request.h"
#include "base/files.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "program/unwind_layout.h"
#include "record/record_script.h"
#include "run/replay_host.h"
#include "run/run_script.h"
#include "runtime/resolver.h"

namespace espy::record {

using recording::FieldKind;
using recording::FieldRole;

namespace {
constexpr uint64_t kTurnIntervalNs = 100'000'000;  // between looks at the age of files
constexpr uint64_t kWaitsPerMark = 5;
constexpr size_t kMaxKnownStacks = 100'000;
constexpr size_t kMaxKnownNames = 100'000;
constexpr uint64_t kFirstOfKernel = uint64_t{1} << 63, kFirstNegative = -uint64_t{4095};  // -1 and the like follow
}  // namespace

void Recorder::use(const program::Program& program) {
  for (const recording::Layout& layout : description_.layouts)
    named_fields_.push_back(named_fields(description_, layout));
  std::unordered_map<std::string_view, std::vector<uint32_t>> by_name;
  for (uint32_t i = 0; i < description_.probes.size(); ++i) by_name[description_.probes[i].name].push_back(i);
  for (const program::Probe& probe : program.probes) probes_.push_back(by_name[probe.name]);
}

bool Recorder::take(const program::EventSchema& schema, std::span<const std::byte> record,
                    runtime::RecordDecoder& decoder) {
  const uint32_t layout = layout_of(schema);
  if (layout == kNoLayout) return false;
  const auto header = [&](size_t index) { return number(schema.fields[index], record); };
  const auto probe_index = static_cast<uint64_t>(header(0));
  if (probe_index >= probes_.size()) return false;
  const std::vector<uint32_t>& named = probes_[probe_index];
  const auto found =
      std::ranges::find(named, layout, [&](uint32_t index) { return description_.probes[index].layout; });
  if (found == named.end()) return false;
  const uint32_t probe = *found;
  note_task(schema, record);
  note_names(schema, layout, record, decoder);
  note_stacks(schema, layout, record, decoder);
  writer_.begin_event(probe, static_cast<uint64_t>(header(1)), static_cast<uint32_t>(header(2)), task_);
  size_t at = first_value(), stack = 0;
  for (const recording::Field& field : description_.layouts[layout].fields) {
    switch (field.kind) {
      case FieldKind::kNothing: continue;
      case FieldKind::kNumber: writer_.add_number(number(schema.fields[at], record)); break;
      case FieldKind::kText:
      case FieldKind::kChars: {
        const size_t longest = field.role == FieldRole::kValue ? SIZE_MAX : description_.max_text_bytes - 1;
        writer_.add_text(text(schema.fields[at], record).substr(0, longest));
        break;
      }
      case FieldKind::kBytes: writer_.add_text(bytes(schema.fields[at], record)); break;
      case FieldKind::kStack: writer_.add_stack(noted_stacks_[stack++]); break;
    }
    ++at;
  }
  keep_error(writer_.end_event());
  if (ring_ != nullptr && writer_.block_count() != turned_block_) turn_ring();
  return true;
}

// The number at the start of the format; kNoLayout for what is no event of the recording.
uint32_t Recorder::layout_of(const program::EventSchema& schema) {
  const auto [known, is_new] = layouts_.try_emplace(&schema, kNoLayout);
  if (!is_new || schema.literals.empty() || !schema.literals[0].starts_with(kRecordMark)) return known->second;
  const std::string_view rest = std::string_view(schema.literals[0]).substr(kRecordMark.size());
  uint32_t layout = kNoLayout;
  std::from_chars(rest.data(), rest.data() + rest.size(), layout);
  if (layout >= description_.layouts.size()) return kNoLayout;
  const auto values = std::ranges::count_if(description_.layouts[layout].fields, [](const recording::Field& field) {
    return field.kind != FieldKind::kNothing;
  });
  if (schema.fields.size() == first_value() + static_cast<size_t>(values)) known->second = layout;
  return known->second;
}

// ---- The task

void Recorder::note_task(const program::EventSchema& schema, std::span<const std::byte> record) {
  const auto id = [&](size_t index) { return static_cast<uint32_t>(number(schema.fields[index], record)); };
  task_.pid = id(3);
  task_.tid = id(4);
  task_.uid = id(5);
  task_.gid = id(6);
  task_.cgroup = static_cast<uint64_t>(number(schema.fields[7], record));
  task_.comm = text(schema.fields[8], record);
  task_.parents.resize(parents_);
  for (size_t i = 0; i < parents_; ++i) {
    task_.parents[i].pid = id(kEventFields + 2 * i);
    task_.parents[i].comm = text(schema.fields[kEventFields + 2 * i + 1], record);
  }
}

// ---- Names of addresses, which precede their event
//
// Of ksym() and usym() in scripts, the name is what the record itself is shown as: the process may have ended. Of other
// values, those that can be addresses of functions have names: pointers and unsigned words into the kernel, pointers to
// functions and to anything in programs.

std::vector<bool> Recorder::named_fields(const recording::Description& description, const recording::Layout& layout) {
  std::vector<bool> out;
  for (const recording::Field& field : layout.fields) {
    bool may_be_code = field.role == FieldRole::kNamed;
    if (field.kind == FieldKind::kNumber && field.type != recording::kNoType) {
      const recording::Type& type = description.types[field.type];
      const bool is_word = type.kind == recording::TypeKind::kInt && type.size_bytes == 8 && !type.is_signed;
      may_be_code = is_word || type.kind == recording::TypeKind::kPointer;
    }
    out.push_back(may_be_code);
  }
  return out;
}

void Recorder::note_names(const program::EventSchema& schema, uint32_t layout, std::span<const std::byte> record,
                          runtime::RecordDecoder& decoder) {
  const std::vector<recording::Field>& fields = description_.layouts[layout].fields;
  const std::vector<bool>& named = named_fields_[layout];
  size_t at = first_value();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == FieldKind::kNothing) continue;
    const program::EventField& field = schema.fields[at++];
    if (!named[i]) continue;
    const auto address = static_cast<uint64_t>(number(field, record));
    const bool is_of_kernel = address >= kFirstOfKernel && address < kFirstNegative;
    const recording::Place place{is_of_kernel ? 0 : task_.pid, false, address};
    if (names_.size() > kMaxKnownNames) names_.clear();
    if (fields[i].role == FieldRole::kNamed) {
      const output::Value value = decoder.value(field, record);
      if (const auto* shown = std::get_if<output::TextValue>(&value.node)) note_name(place, shown->text);
    } else if (is_of_kernel || description_.layouts[layout].has_user_names) {
      const auto [known, is_new] = names_.try_emplace(place);
      if (is_new) known->second = is_of_kernel ? kernel_name(address) : code_name(address);
      note_name(place, known->second);
    }
  }
}

// Without a symbol, it is shown as a number.
void Recorder::note_name(const recording::Place& place, const std::string& symbol) {
  if (symbol.empty() || symbol.starts_with("0x")) return;
  writer_.note_place(place, [&] { return std::vector{recording::Frame{.symbol = symbol}}; });
}

std::string Recorder::kernel_name(uint64_t address) {
  const auto symbol = symbols_.kernel(address);
  return symbol ? symbol->name : "";
}

std::string Recorder::code_name(uint64_t address) {
  if (!symbols_.user_module(task_.pid, address)) return "";
  const auto symbol = symbols_.user(task_.pid, address);
  return symbol ? symbol->name : "";
}

// ---- Stacks, which precede their event

void Recorder::note_stacks(const program::EventSchema& schema, uint32_t layout, std::span<const std::byte> record,
                           runtime::RecordDecoder& decoder) {
  noted_stacks_.clear();
  size_t at = first_value();
  for (const recording::Field& field : description_.layouts[layout].fields) {
    if (field.kind == FieldKind::kStack) noted_stacks_.push_back(note_stack(schema.fields[at], record, decoder));
    if (field.kind != FieldKind::kNothing) ++at;
  }
}

uint64_t Recorder::note_stack(const program::EventField& field, std::span<const std::byte> record,
                              runtime::RecordDecoder& decoder) {
  const uint64_t reference = load_le(record, field.offset_bytes);
  if (static_cast<int64_t>(reference) < 0) return 0;
  const bool is_user = types_[field.type].kind == types::Kind::kUserStack;
  const uint64_t rest = is_user ? load_le(record, field.offset_bytes + 8) : 0;
  if (stacks_.size() > kMaxKnownStacks) stacks_.clear();
  const auto [at, is_new] = stacks_.try_emplace({field.type.index, reference, rest, is_user ? task_.pid : 0});
  KnownStack& known = at->second;
  if (is_new) known = decode_stack(field, record, decoder);
  if (known.places.empty()) return 0;
  if (known.block != writer_.block_count()) {
    known.number = writer_.note_stack(known.places, [&](size_t index) { return known.names[index]; });
    known.block = writer_.block_count();
  }
  return known.number;
}

// Functions that are inlined at a place have its address.
Recorder::KnownStack Recorder::decode_stack(const program::EventField& field, std::span<const std::byte> record,
                                            runtime::RecordDecoder& decoder) const {
  KnownStack out;
  const output::Value value = decoder.value(field, record);
  const auto* stack = std::get_if<output::StackValue>(&value.node);
  if (stack == nullptr) return out;
  bool begins_place = true, is_caller = false;
  for (const auto& frame : stack->frames) {
    if (frame->address == 0 && frame->symbol == output::kTruncated) continue;
    if (begins_place) {
      out.places.push_back({stack->is_user ? task_.pid : 0, stack->is_user && is_caller,
                            program::tagged(frame->address, frame->code_tag)});
      out.names.emplace_back();
    }
    out.names.back().push_back({frame->symbol, frame->offset, frame->module, frame->module_address.value_or(0),
                                frame->module_address.has_value(), frame->file, frame->line, frame->is_inlined});
    begins_place = !frame->is_inlined;
    // As output::Decoder has it.
    is_caller = frame->symbol.empty() || frame->symbol != signal_trampoline_;
  }
  return out;
}

// ---- Values

int64_t Recorder::number(const program::EventField& field, std::span<const std::byte> record) const {
  const types::Type& type = types_[field.type];
  const uint64_t bits = load_le(record, field.offset_bytes, type.size_bytes);
  const unsigned unused = 64 - 8 * std::min<unsigned>(type.size_bytes, 8);
  return type.is_signed && unused < 64 ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
}

std::string_view Recorder::bytes(const program::EventField& field, std::span<const std::byte> record) const {
  const std::string_view all(reinterpret_cast<const char*>(record.data()), record.size());
  size_t offset = field.offset_bytes, size = types_[field.type].size_bytes;
  if (field.is_in_tail) {
    offset = load_le(record, field.offset_bytes, 4);
    size = load_le(record, field.offset_bytes + 4, 4);
  } else if (types_[field.type].kind == types::Kind::kBuffer) {
    size = load_le(record, offset, 4);
    offset += 4;
  }
  return all.substr(std::min(offset, all.size()), size);
}

std::string_view Recorder::text(const program::EventField& field, std::span<const std::byte> record) const {
  const std::string_view found = bytes(field, record);
  return found.substr(0, found.find('\0'));
}

// ---- The end of batches and of the run

void Recorder::write_at_once(uint64_t longest_wait_ns, bool marks_time, std::function<void()> on_written) {
  longest_wait_ns_ = longest_wait_ns;
  marks_time_ = marks_time;
  on_written_ = std::move(on_written);
}

void Recorder::turn_ring() {
  if (status_) keep_error(ring_->turn(writer_, clock_ns(CLOCK_BOOTTIME)));
  turned_block_ = writer_.block_count();
}

Status Recorder::batch_end() {
  const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  if (!writer_.has_buffered() && !marks_time_) last_flush_ns_ = now_ns;
  if (now_ns - last_flush_ns_ >= (writer_.has_buffered() ? longest_wait_ns_ : kWaitsPerMark * longest_wait_ns_)) {
    keep_error(writer_.has_buffered() ? writer_.flush() : writer_.mark_time(clock_ns(CLOCK_BOOTTIME)));
    last_flush_ns_ = now_ns;
  }
  if (on_written_ && told_block_ != writer_.block_count()) {
    told_block_ = writer_.block_count();
    on_written_();
  }
  if (ring_ != nullptr && now_ns - last_turn_ns_ >= kTurnIntervalNs) {
    turn_ring();
    last_turn_ns_ = now_ns;
  }
  return status_;
}

Status Recorder::finish(std::span<const std::string> incomplete) {
  if (std::exchange(is_finished_, true)) return status_;
  if (ring_ != nullptr) turn_ring();
  keep_error(writer_.finish(clock_ns(CLOCK_BOOTTIME), incomplete));
  if (on_written_) on_written_();
  return status_;
}

namespace {

constexpr uint64_t kLiveWaitNs = 20'000'000;  // of events that another process shows

// The command of -c has been started.
recording::Description describe(const run::Environment& e, const RecordWishes& wishes, const RecordScript& script,
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
  if (e.config.tracee.has_child) out.child_pid = e.config.tracee.child_pid;
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
                  static_cast<double>(writer.total_bytes()) / 1024, has_many ? " including deleted files" : "");
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

Status begin(const RecordPlan& plan, run::Environment& e, uint32_t parents, Recording& out) {
  out.recorder.emplace(TRY(open_files(plan, out)), out.description, e.types, e.symbols,
                       e.kernel->arch().signal_trampoline, parents);
  if (out.ring) out.recorder->use_ring(&*out.ring);
  if (plan.reader != nullptr)
    out.recorder->write_at_once(kLiveWaitNs, plan.reader->needs_time, plan.reader->on_written);
  return {};
}

}  // namespace

run::RunOptions options_of_recorder(const run::RunOptions& options) {
  run::RunOptions out = options;
  out.output.file = "/dev/null";
  out.output.format = "text";
  out.output.hides_warnings = true;
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

int run_recorder(const run::RunOptions& options, const run::Host& host, run::Environment& e, const RecordWishes& wishes,
                 RecordScript script, const RecordPlan& plan) {
  Recording recording;
  const auto prepare = [&](const program::Program& program, run::Environment& environment,
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
  const int status = run::run_script(std::move(script.script), options_of_recorder(options), e, prepare);
  if (!options.stages.dumped.empty() || !recording.recorder) return status;
  if (const Status done = recording.recorder->finish({}); !done)
    return status == 0 ? run::complain(done.error()) : status;
  if (plan.reader == nullptr && !options.output.is_quiet)
    show_summary(recording.recorder->writer(), plan.path, recording.ring ? &*recording.ring : nullptr);
  return status;
}

namespace {

// The messages between the two processes. The recorder sends kAttached once the probes are attached, and kWritten after
// each block; the process that shows sends kGo once the script is checked against the recording.
constexpr char kAttached = 'a', kWritten = 'w', kGo = 'g';

// Ends the recorder. A run takes it also if the caller of espy ignores it, as runtime::Signals says.
constexpr int kEndSignal = SIGINT;

// An end of a socket between the two.
class Link {
 public:
  explicit Link(OwnedFd socket) : socket_(std::move(socket)) {}

  // Does not block. A message that does not fit is dropped: the peer has unread ones, which wake it up.
  void tell(char word) const { ::send(socket_.get(), &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL); }

  // Waits for a word, and takes all that are there. False if the other process has ended, or if `on_end_request`, which
  // is called once the end of the run is requested, at least once, says that it is waited no longer.
  bool wait_for(char word, const std::function<bool()>& on_end_request) const {
    for (;;) {
      if (is_end_requested() && on_end_request()) return false;
      pollfd polled = {socket_.get(), POLLIN, 0};
      if (::poll(&polled, 1, kLongestWaitMs) <= 0) continue;
      char words[256];
      const ssize_t got = ::recv(socket_.get(), words, sizeof(words), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (got > 0 && std::string_view(words, static_cast<size_t>(got)).find(word) != std::string_view::npos)
        return true;
    }
  }

 private:
  static constexpr int kLongestWaitMs = 1000;  // a signal may come right before poll()

  OwnedFd socket_;
};

Status check_options(const run::RunOptions& options) {
  if (!options.replay.files.empty()) return fail("--record records events of this machine: not with -i");
  const bool is_other_run = options.config.runs_tests || options.config.runs_benchmarks || options.is_dry_run;
  const bool is_viewed = options.output.listen || options.output.watch_interval_ns != 0;
  if (is_other_run || options.cost.needs_hook_costs() || is_viewed || !options.user.empty() ||
      !options.stages.dumped.empty())
    return fail(
        "--record goes with a plain run only: not with --test, --bench, --dry-run, --dump, --cost, --budget, "
        "--check-cost, --listen, --watch or --user",
        0, "`espy record` can record at the same time");
  return {};
}

// ---- The recorder

int record(const run::RunOptions& options, const run::Host& host, const Link& link) {
  const auto environment = host.open(options);
  if (!environment) return run::complain(environment.error());
  run::Environment& e = **environment;
  RecordWishes wishes;
  wishes.reads.emplace();
  e.config.tracee.has_child = options.tracee.command.has_value();  // it is started later
  if (const Status added = add_reads(options, e, *wishes.reads); !added) return EXIT_FAILURE;
  e.config.tracee.has_child = false;
  wishes.depth = std::min(kMaxRecordDepth, wishes.reads->depth);
  if (wishes.reads->targets.empty())
    return run::complain(
        {"the script has no events to record", 0, "begin, end and interval are there in any recording"});
  auto script = write_record_script({}, wishes, e);
  if (!script) return run::complain(script.error());
  if (!options.output.hides_warnings) show_warnings(*script);
  RecordPlan::Reader reader;
  reader.needs_time = wishes.reads->has_timers;
  reader.on_ready = [&]() -> Status {
    link.tell(kAttached);
    // The end may be requested before the word is read: after exit() in begin. Then the recording is empty.
    bool is_ending = false;
    if (!link.wait_for(kGo, [&] { return is_ending = true; }) && !is_ending) ::_exit(EXIT_FAILURE);
    return {};
  };
  reader.on_written = [&] { link.tell(kWritten); };
  const std::string command =
      fmt::format("espy --record {} {}", *options.record.file, options.script.file.value_or("-e ..."));
  return run_recorder(options, host, e, wishes, std::move(*script),
                      {*options.record.file, command, options.record.ring, &reader});
}

int run_as_recorder(run::RunOptions options, const run::Host& host, const Link& link) {
  ::signal(kEndSignal, [](int) {});  // outside of the run; then the socket tells the end of the other process
  options.output.is_quiet = true;
  const int status = record(options, host, link);
  std::fflush(stdout);
  std::fflush(stderr);
  return status;
}

// ---- The process that shows

run::RunOptions options_of_replay(const run::RunOptions& options) {
  run::RunOptions out = options;
  out.replay.files = {*options.record.file};
  out.record.file.reset();
  out.tracee.command.reset();
  out.tracee.cgroup.clear();
  out.tracee.container.clear();
  out.config.tracee.processes.clear();
  out.config.tracee.thread_names.clear();
  out.config.tracee.follows = false;
  out.shown_diagnostic = run::as_of_recording;
  return out;
}

int show(const run::RunOptions& options, const Link& link, pid_t recorder) {
  bool is_ended = false;
  // By one signal: a second one would end it at once. It may have had that of the terminal.
  const std::function<bool()> end_recorder = [&] {
    if (!std::exchange(is_ended, true)) ::kill(recorder, kEndSignal);
    return false;  // it is waited for the rest
  };
  if (!link.wait_for(kAttached, end_recorder)) return EXIT_FAILURE;  // it has said why
  run::Following following;
  following.wait = [&] { return link.wait_for(kWritten, end_recorder); };
  following.on_checked = [&]() -> Status {
    link.tell(kGo);
    return {};
  };
  following.on_end = [&] { is_ended = true; };
  const run::Host host = run::following_host(following);
  const auto environment = host.open(options);
  const int status =
      environment ? run::run_script(options, **environment, host.prepare) : run::complain(environment.error());
  end_recorder();  // after exit(), or an error of the script
  return status;
}

int status_of(pid_t process) {
  const std::optional<int> status = wait_for_child(process);
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : EXIT_FAILURE;
}

}  // namespace

int run_recorded(const run::RunOptions& options, const run::Host& host) {
  if (const Status good = check_options(options); !good) return run::complain(good.error());
  run::RunOptions whole = options;
  if (!options.script.text && !options.script.tool && options.script.file == "-") {  // both read it
    auto text = read_stream("/dev/stdin", kMaxTextBytes);
    if (!text) return run::complain(text.error());
    whole.script.text = std::move(*text);
  }
  int sockets[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return run::complain({fmt::format("cannot start a recorder: error {}", errno)});
  OwnedFd own(sockets[0]), other(sockets[1]);
  const auto record = [&] {
    own.reset();
    return run_as_recorder(std::move(whole), host, Link(std::move(other)));
  };
  const Result<pid_t> recorder =
      start_child(record, {.parent_end_signal = kEndSignal, .failure = "cannot start a recorder"});
  if (!recorder) return run::complain(recorder.error());
  other.reset();
  const int shown = show(options_of_replay(whole), Link(std::move(own)), *recorder);
  const int recorded = status_of(*recorder);
  return shown != 0 ? shown : recorded;
}

}  // namespace espy::record
