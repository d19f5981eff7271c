#include "replay/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace espy::replay {

namespace {

using program::ProgramKind;
using simulator::Attachment;

constexpr size_t kPerfEventTailBytes = 16;  // struct bpf_perf_event_data behind the registers

}  // namespace

Player::Player(recording::Reader& reader, simulator::Simulator& machine, const program::Program& program,
               kernel::Kernel& kernel, types::Types& types, std::function<bool(const program::Probe&)> is_timer)
    : reader_(reader),
      machine_(machine),
      program_(program),
      kernel_(kernel),
      types_(types),
      is_timer_(std::move(is_timer)) {
  simulator::World& world = machine.world();
  world.is_recorded = true;
  world.step_ns = 0;
  world.now_ns = reader.begin_ns();
  world.wall_clock_offset_ns =
      static_cast<int64_t>(reader.description().started_wall_ns - reader.description().started_ns);
  world.task = {.comm = "espy", .pid = 0, .tid = 0, .cgroup = 0};
}

// The probe that an attachment is for; of many that one program serves, any.
const program::Probe* Player::probe_of(const Attachment& attachment) const {
  const program::Probe* any = nullptr;
  for (const program::ProbeId id : program_.probes.ids()) {
    if (program_.probes[id].program != attachment.program) continue;
    if (id.index == attachment.cookie) return &program_.probes[id];
    if (any == nullptr) any = &program_.probes[id];
  }
  return any;
}

Status Player::start() {
  has_started_ = true;
  TRY_STATUS(check_probes());
  TRY_STATUS(check_values());
  routes_.resize(reader_.description().probes.size());
  for (uint32_t i = 0; i < routes_.size(); ++i) TRY_STATUS(add_routes(i));
  for (const Attachment& attachment : machine_.attachments()) {
    const program::Probe* probe = probe_of(attachment);
    if (probe == nullptr || !is_timer_(*probe)) continue;
    timers_.push_back({attachment, probe->number, reader_.begin_ns() + probe->number});
  }
  timer_context_.resize(kernel_.arch().pt_regs_size_bytes + kPerfEventTailBytes);
  return {};
}

// Every attached probe must have been recorded, or be a timer.
Status Player::check_probes() {
  const std::vector<recording::Probe>& recorded = reader_.description().probes;
  for (const program::Probe& probe : program_.probes) {
    const auto is_its = [&](const Attachment& attachment) { return attachment.program == probe.program; };
    const bool is_attached = std::ranges::any_of(machine_.attachments(), is_its);
    if (!is_attached || is_timer_(probe)) continue;
    if (std::ranges::find(recorded, probe.name, &recording::Probe::name) != recorded.end()) continue;
    missing_ =
        Missing{probe.span, fmt::format("`{}` was not recorded", probe.name), "`espy -i FILE -l` lists what was"};
    return fail(missing_->sentence);
  }
  return {};
}

bool Player::has_symbols(types::TypeId id) const {
  const types::Type& type = types_[id];
  if (type.kind == types::Kind::kKernelSymbol || type.kind == types::Kind::kUserSymbol) return true;
  if (type.kind == types::Kind::kArray) return has_symbols(type.element);
  if (type.kind != types::Kind::kTuple && type.kind != types::Kind::kRecord) return false;
  return std::ranges::any_of(type.members, [&](const types::Member& member) { return has_symbols(member.type); });
}

// The functions at addresses of the recorded machine are not those of this one, and its clock is another.
Status Player::check_values() {
  const auto refuse = [&](source::Span span) {
    missing_ = Missing{span, "the names of addresses were not recorded", "print the addresses: `%p`, `(uint64)`"};
    return fail(missing_->sentence);
  };
  for (const program::ScriptMap& map : program_.script_maps) {
    if (types_[map.value].kind != types::Kind::kTseries) continue;
    missing_ = Missing{map.span, "a time series cannot be replayed: it would have the clock of this machine",
                       "strftime() of `nsecs` is a key with the recorded time"};
    return fail(missing_->sentence);
  }
  for (const program::EventSchema& event : program_.events)
    for (const program::EventField& field : event.fields)
      if (has_symbols(field.type)) return refuse(event.span);
  for (const program::ScriptMap& map : program_.script_maps)
    if (has_symbols(map.key) || has_symbols(map.value)) return refuse(map.span);
  return {};
}

Status Player::add_routes(uint32_t index) {
  const recording::Probe& recorded = reader_.description().probes[index];
  const auto name = tracepoint_name(recorded.name);
  if (!name) return {};
  const std::string of_all_calls = raw_tracepoint_of_syscall(*name, kernel_);
  for (const Attachment& attachment : machine_.attachments()) {
    const program::Probe* probe = probe_of(attachment);
    const ProgramKind kind = program_.programs[attachment.program].kind;
    std::unique_ptr<Context> context;
    if (!of_all_calls.empty() && attachment.raw_tracepoint == of_all_calls) {
      context = TRY(make_syscall_context(*name, recorded, kernel_, types_, machine_.world().memory));
    } else if (attachment.raw_tracepoint == name->event) {
      context = make_empty_context();
    } else if (kind == ProgramKind::kTracepoint && probe != nullptr && probe->name == recorded.name) {
      context = TRY(make_record_context(*name, recorded, kernel_, types_));
    }
    if (context) routes_[index].push_back({attachment, std::move(context)});
  }
  return {};
}

// One event or one expiry of a timer at a time, so that what it prints is taken from the rings before the next one.
Result<bool> Player::next() {
  if (!has_started_) TRY_STATUS(start());
  if (!has_event_ && !has_ended_) {
    has_event_ = reader_.next(event_);
    has_ended_ = !has_event_;
  }
  if (TRY(fire_timer(has_event_ ? event_.time_ns : reader_.last_ns()))) return true;
  if (!has_event_) return false;
  has_event_ = false;
  TRY_STATUS(play(event_));
  return true;
}

Status Player::play(const recording::Event& event) {
  const std::vector<Route>& routes = routes_[event.probe];
  if (routes.empty()) return {};
  simulator::World& world = machine_.world();
  const recording::Task& task = *event.task;
  world.cpu = event.cpu;
  world.now_ns = event.time_ns;
  world.task.comm = task.comm;
  world.task.pid = task.pid;
  world.task.tid = task.tid;
  world.task.uid = task.uid;
  world.task.gid = task.gid;
  world.task.cgroup = task.cgroup;
  const recording::Probe& probe = reader_.description().probes[event.probe];
  lent_.clear();
  for (size_t i = 1; i < event.values.size(); ++i) {
    if (probe.fields[i].kind != recording::FieldKind::kText || probe.fields[i - 1].name != probe.fields[i].name)
      continue;
    const std::string_view text = event.values[i].text;
    lent_.push_back({static_cast<uint64_t>(event.values[i - 1].number), text,
                     text.size() + 1 < reader_.description().max_text_bytes});
  }
  world.memory.lend(lent_);
  for (const Route& route : routes) TRY_STATUS(fire(route.attachment, route.context->fill(event)));
  return {};
}

// Fires the timer that is due first, if that is not after `until_ns`. It runs in no task that is known.
Result<bool> Player::fire_timer(uint64_t until_ns) {
  const auto next = std::ranges::min_element(timers_, {}, &Timer::due_ns);
  if (next == timers_.end() || next->due_ns > until_ns) return false;
  simulator::World& world = machine_.world();
  world.cpu = 0;
  world.now_ns = next->due_ns;
  world.task = {.comm = "", .pid = 0, .tid = 0, .cgroup = 0};
  world.memory.lend({});
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  next->due_ns = next->period_ns > kNever - next->due_ns ? kNever : next->due_ns + next->period_ns;
  TRY_STATUS(fire(next->attachment, timer_context_));
  return true;
}

Status Player::fire(const Attachment& attachment, std::span<std::byte> context) {
  Status done = machine_.fire(attachment, context);
  if (done || !machine_.unrecorded()) return done;
  const simulator::Unrecorded& place = *machine_.unrecorded();
  const bool has_cut = place.is_memory && std::ranges::any_of(lent_, [](const auto& piece) { return !piece.is_whole; });
  missing_ = Missing{{}, place.sentence, has_cut ? "`espy record --size BYTES` records longer texts" : ""};
  for (const program::LineInfo& line : program_.programs[place.program].lines)
    if (line.insn <= place.insn) missing_->span = line.span;
  return done;
}

}  // namespace espy::replay
