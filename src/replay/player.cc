#include "replay/player.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/byte_reader.h"
#include "ir/ir.h"

namespace espy::replay {

namespace {

using recording::FieldKind;
using recording::FieldRole;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kMaxRecordBytes = 64 << 10;

bool is_in_context(const recording::Field& field) {
  constexpr FieldRole kRoles[] = {FieldRole::kArgs, FieldRole::kArgument, FieldRole::kResult, FieldRole::kLocal,
                                  FieldRole::kValue};
  return std::ranges::find(kRoles, field.role) != std::end(kRoles) && field.kind != FieldKind::kNothing;
}

}  // namespace

ContextShape context_shape(const recording::Layout& layout, kernel::Kernel& kernel, types::Types& types) {
  ContextShape out;
  for (const recording::Field& field : layout.fields) {
    const bool has_size = field.kind == FieldKind::kChars || field.kind == FieldKind::kBytes;
    const types::TypeId type = kernel.recorded_type(types, field.type);
    const uint32_t size = !has_size ? kWordBytes : type.valid() ? types[type].size_bytes : 0;
    const bool is_placed = is_in_context(field) && size <= kMaxRecordBytes / 2 - out.size_bytes;
    out.places.push_back(is_placed ? std::optional(out.size_bytes) : std::nullopt);
    out.sizes.push_back(size);
    if (is_placed) out.size_bytes += (size + kWordBytes - 1) / kWordBytes * kWordBytes;
  }
  return out;
}

std::span<std::byte> Context::fill(const recording::Event& event) {
  record_.assign(shape_.size_bytes, std::byte{0});
  for (size_t i = 0; i < layout_.fields.size(); ++i) {
    if (!shape_.places[i]) continue;
    const uint32_t place = *shape_.places[i];
    const recording::Value& value = event.values[i];
    switch (layout_.fields[i].kind) {
      case FieldKind::kNumber: std::memcpy(record_.data() + place, &value.number, sizeof(value.number)); break;
      case FieldKind::kText: append_text(place, value.text); break;
      default:
        std::memcpy(record_.data() + place, value.text.data(), std::min<size_t>(value.text.size(), shape_.sizes[i]));
    }
  }
  record_.resize((record_.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  return record_;
}

void Context::append_text(uint32_t place, std::string_view text) {
  const size_t where = record_.size();
  const size_t size = std::min<size_t>(text.size(), UINT16_MAX - 1);
  if (where + size >= kMaxRecordBytes) return;
  const auto locator = static_cast<uint32_t>((size + 1) << 16 | where);
  std::memcpy(record_.data() + place, &locator, sizeof(locator));
  record_.resize(where + size + 1);
  std::memcpy(record_.data() + where, text.data(), size);
}

namespace {

using recording::FieldKind;
using recording::FieldRole;
using simulator::Attachment;

constexpr size_t kPerfEventTailBytes = 16;  // struct bpf_perf_event_data behind the registers
// Invented addresses in kernel memory.
constexpr uint64_t kTaskAddress = 0xffff'8800'0000'0000, kParentDistance = 0x10'0000;
constexpr uint64_t kLeaderAddress = kTaskAddress + 100 * kParentDistance;
constexpr uint64_t kUnknownAddress = kTaskAddress + 101 * kParentDistance;
constexpr uint8_t kCallCode = 0x85;  // BPF_JMP | BPF_CALL

bool calls(const program::BpfInsn& insn, ir::Helper helper) {
  return insn.code == kCallCode && insn.registers == 0 && insn.imm == static_cast<int32_t>(helper);
}

bool calls_helper(const program::Program& program, ir::Helper helper) {
  return std::ranges::any_of(program.programs, [&](const program::BpfProgram& each) {
    return std::ranges::any_of(each.code, [&](const program::BpfInsn& insn) { return calls(insn, helper); });
  });
}

bool is_task_pointer(const types::Types& types, const types::Type& type) {
  return type.kind == types::Kind::kPointer && types[type.element].kind == types::Kind::kStruct &&
         types[type.element].name == "task_struct";
}

std::string_view bytes_of(const auto& number) { return {reinterpret_cast<const char*>(&number), sizeof(number)}; }

}  // namespace

Player::Player(recording::Reader& reader, simulator::Simulator& machine, const program::Program& program,
               kernel::Kernel& kernel, types::Types& types, TimerOf timer_of)
    : reader_(reader),
      machine_(machine),
      program_(program),
      kernel_(kernel),
      types_(types),
      timer_of_(std::move(timer_of)) {
  simulator::World& world = machine.world();
  world.is_recorded = true;
  world.step_ns = 0;
  world.now_ns = reader.begin_ns();
  world.wall_clock_offset_ns =
      static_cast<int64_t>(reader.description().started_wall_ns - reader.description().started_ns);
  world.frame_names = &reader.names();
  reader.tell_times();
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
  if (calls_helper(program_, ir::Helper::get_current_task)) find_task_members();
  TRY_STATUS(check(false));
  const recording::Description& description = reader_.description();
  std::unordered_map<std::string_view, std::vector<Attachment>> by_name;
  for (const Attachment& each : machine_.attachments())
    if (!each.event) by_name[each.raw_tracepoint].push_back(each);
  routes_.resize(description.probes.size());
  for (uint32_t i = 0; i < routes_.size(); ++i) {
    const auto found = by_name.find(description.probes[i].name);
    if (found == by_name.end()) continue;
    // Several probes may have one name, functions of one name for example, with other arguments each.
    std::vector<Attachment> own;
    std::ranges::copy_if(found->second, std::back_inserter(own), [&](const Attachment& each) {
      const program::ProbeId id{static_cast<uint32_t>(each.cookie)};
      return program_.probes.contains(id) && program_.probes[id].number == i;
    });
    if (own.empty()) continue;
    routes_[i].emplace(Route{std::move(own), {}});
    routes_[i]->context.emplace(description.layout_of(i), kernel_, types_);
  }
  add_timers();
  return {};
}

void Player::find_task_members() {
  const types::TypeId task = kernel_.find_struct(types_, "task_struct");
  if (!task.valid()) return;
  const auto offset_of = [&](std::string_view name, uint32_t size_bytes) -> std::optional<uint32_t> {
    const auto member = types::find_member(types_, task, name);
    if (!member || types_[member->type].size_bytes != size_bytes) return std::nullopt;
    return member->offset_bits / 8;
  };
  constexpr uint32_t kCommBytes = 16;
  task_members_ = {offset_of("pid", 4), offset_of("tgid", 4), offset_of("comm", kCommBytes),
                   offset_of("real_parent", 8), offset_of("group_leader", 8)};
}

void Player::add_timers() {
  for (const Attachment& attachment : machine_.attachments()) {
    const program::Probe* probe = attachment.event ? probe_of(attachment) : nullptr;
    if (probe == nullptr) continue;
    const uint32_t cpus = timer_of_(*probe) == spec::Timer::kOnEachCpu ? reader_.description().cpu_count : 1;
    for (uint32_t cpu = 0; cpu < cpus; ++cpu)
      timers_.push_back({attachment, cpu, probe->number, reader_.begin_ns() + probe->number});
  }
  timer_context_.resize(kernel_.arch().pt_regs_size_bytes + kPerfEventTailBytes);
}

bool Player::any_part(types::TypeId id, const std::function<bool(const types::Type&)>& is_wanted) const {
  const types::Type& type = types_[id];
  if (is_wanted(type)) return true;
  if (type.kind == types::Kind::kArray) return any_part(type.element, is_wanted);
  if (type.kind != types::Kind::kTuple && type.kind != types::Kind::kRecord) return false;
  return std::ranges::any_of(type.members, [&](const types::Member& each) { return any_part(each.type, is_wanted); });
}

// Whether scripts of --for have read them. Otherwise, the player invents some.
bool Player::has_task_addresses() const {
  const recording::Description& description = reader_.description();
  return std::ranges::any_of(description.layouts, [&](const recording::Layout& layout) {
    return std::ranges::any_of(layout.fields, [&](const recording::Field& field) {
      const types::TypeId type = kernel_.recorded_type(types_, field.type);
      return field.role == FieldRole::kValue && type.valid() && is_task_pointer(types_, types_[type]);
    });
  });
}

// Values of types that only some recordings can give.
Status Player::check_value(types::TypeId type, source::Span span) {
  const std::vector<recording::Layout>& layouts = reader_.description().layouts;
  const bool lacks_kernel_names = std::ranges::none_of(layouts, &recording::Layout::has_kernel_names);
  const bool lacks_user_names = std::ranges::none_of(layouts, &recording::Layout::has_user_names);
  const auto has = [&](const auto& is_wanted) { return any_part(type, is_wanted); };
  if ((lacks_kernel_names && has([](const types::Type& part) { return part.kind == types::Kind::kKernelSymbol; })) ||
      (lacks_user_names && has([](const types::Type& part) { return part.kind == types::Kind::kUserSymbol; })))
    missing_ = Missing{span, "the names of addresses were not recorded",
                       "`espy record --for SCRIPT` records the names that a script reads"};
  else if (task_members_ && !has_task_addresses() &&
           has([&](const types::Type& part) { return is_task_pointer(types_, part); }))
    missing_ = Missing{span, "addresses of tasks were not recorded",
                       "`espy record --for SCRIPT` records `curtask` for a script that reads it"};
  return missing_ ? Status(fail(missing_->sentence)) : Status();
}

Status Player::check_values() {
  for (const program::EventSchema& event : program_.events)
    for (const program::EventField& field : event.fields) TRY_STATUS(check_value(field.type, event.span));
  for (const program::ScriptMap& map : program_.script_maps) {
    TRY_STATUS(check_value(map.key, map.span));
    TRY_STATUS(check_value(map.value, map.span));
  }
  return {};
}

Status Player::check(bool is_live) {
  TRY_STATUS(check_values());
  return is_live ? check_actions() : Status();
}

Status Player::check_actions() {
  constexpr ir::Helper kActions[] = {ir::Helper::send_signal, ir::Helper::send_signal_thread,
                                     ir::Helper::override_return, ir::Helper::probe_write_user};
  for (const program::BpfProgram& each : program_.programs)
    for (uint32_t i = 0; i < each.code.size(); ++i) {
      if (std::ranges::none_of(kActions, [&](ir::Helper helper) { return calls(each.code[i], helper); })) continue;
      missing_ = Missing{{},
                         "this acts on other processes, which a run with --record does not",
                         "without --record it acts; `espy record` can record at the same time"};
      for (const program::LineInfo& line : each.lines)
        if (line.insn <= i) missing_->span = line.span;
      return fail(missing_->sentence);
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
  if (event_.task != nullptr) TRY_STATUS(play(event_));
  return true;
}

Status Player::play(const recording::Event& event) {
  std::optional<Route>& route = routes_[event.probe];
  if (!route) return {};
  enter_world(event);
  lend_memory(event);
  const std::span<std::byte> context = route->context->fill(event);
  for (const Attachment& attachment : route->attachments) TRY_STATUS(fire(attachment, context));
  return {};
}

void Player::enter_world(const recording::Event& event) {
  simulator::World& world = machine_.world();
  const recording::Task& task = *event.task;
  world.cpu = event.cpu;
  world.now_ns = event.time_ns;
  world.has_task = true;
  world.task.comm = task.comm;
  world.task.pid = task.pid;
  world.task.tid = task.tid;
  world.task.uid = task.uid;
  world.task.gid = task.gid;
  world.task.cgroup = task.cgroup;
  world.has_kernel_stack = world.has_user_stack = false;
  const std::vector<recording::Field>& fields = reader_.description().layout_of(event.probe).fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& stack = event.values[i].stack;
    if (fields[i].role == FieldRole::kKernelStack) {
      world.has_kernel_stack = true;
      world.kernel_stack.assign(stack.begin(), stack.end());
    } else if (fields[i].role == FieldRole::kUserStack) {
      world.has_user_stack = true;
      world.user_stack.assign(stack.begin(), stack.end());
    }
  }
}

void Player::lend_memory(const recording::Event& event) {
  const std::vector<recording::Field>& fields = reader_.description().layout_of(event.probe).fields;
  lent_.clear();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].role != FieldRole::kMemory) continue;
    const uint32_t holder = fields[i].pointer_in;
    const uint64_t address = fields[holder].kind == FieldKind::kNumber
                                 ? static_cast<uint64_t>(event.values[holder].number)
                                 : load_le(event.values[holder].text, fields[i].offset_bytes);
    const std::string_view bytes = event.values[i].text;
    const bool is_text = fields[i].kind == FieldKind::kText;
    lent_.push_back({address, bytes, is_text && bytes.size() + 1 < reader_.description().max_text_bytes});
  }
  if (task_members_) lend_task(*event.task);
  machine_.world().memory.lend(lent_);
}

void Player::lend_task(const recording::Task& task) {
  // A pointer to a task that was not recorded leads to where nothing is lent.
  const size_t parents = std::min(task.parents.size(), recording::kMaxParents);
  task_addresses_.clear();
  for (size_t i = 0; i < parents; ++i) task_addresses_.push_back(kTaskAddress + (i + 1) * kParentDistance);
  task_addresses_.push_back(kUnknownAddress);
  task_addresses_.push_back(task.pid == task.tid ? kTaskAddress : kLeaderAddress);
  const auto lend = [&](uint64_t base, std::optional<uint32_t> offset, std::string_view bytes, bool has_nul = false) {
    if (offset) lent_.push_back({base + *offset, bytes, has_nul});
  };
  lend(kTaskAddress, task_members_->pid, bytes_of(task.tid));
  lend(kTaskAddress, task_members_->tgid, bytes_of(task.pid));
  lend(kTaskAddress, task_members_->comm, task.comm, true);
  lend(kTaskAddress, task_members_->parent, bytes_of(task_addresses_[0]));
  lend(kTaskAddress, task_members_->leader, bytes_of(task_addresses_.back()));
  lend(kLeaderAddress, task_members_->pid, bytes_of(task.pid));
  lend(kLeaderAddress, task_members_->tgid, bytes_of(task.pid));
  for (size_t i = 0; i < parents; ++i) {
    lend(task_addresses_[i], task_members_->tgid, bytes_of(task.parents[i].pid));
    lend(task_addresses_[i], task_members_->comm, task.parents[i].comm, true);
    lend(task_addresses_[i], task_members_->parent, bytes_of(task_addresses_[i + 1]));
  }
  machine_.world().current_task = kTaskAddress;
}

// Fires the timer that is due first, if that is not after `until_ns`. It runs in no task that is known.
Result<bool> Player::fire_timer(uint64_t until_ns) {
  const auto next = std::ranges::min_element(timers_, {}, &Timer::due_ns);
  if (next == timers_.end() || next->due_ns > until_ns) return false;
  simulator::World& world = machine_.world();
  world.cpu = next->cpu;
  world.now_ns = next->due_ns;
  world.has_task = world.has_kernel_stack = world.has_user_stack = false;
  world.current_task = 0;
  world.memory.lend({});
  lent_.clear();
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  next->due_ns = next->period_ns > kNever - next->due_ns ? kNever : next->due_ns + next->period_ns;
  TRY_STATUS(fire(next->attachment, timer_context_));
  return true;
}

void Player::leave() {
  simulator::World& world = machine_.world();
  world.has_task = true;
  world.task = {.comm = "espy", .pid = 0, .tid = 0, .cgroup = 0};
  world.has_kernel_stack = world.has_user_stack = false;
  world.current_task = 0;
  world.memory.lend({});
  lent_.clear();
  if (has_ended_ && !has_event_) world.now_ns = std::max(world.now_ns, reader_.last_ns());
}

// Whether it is a value of the event at which no memory was recorded.
bool Player::is_unread_number(uint64_t address) const {
  if (!machine_.world().has_task || event_.task == nullptr) return false;
  const std::vector<recording::Field>& fields = reader_.description().layout_of(event_.probe).fields;
  for (uint32_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind != FieldKind::kNumber || static_cast<uint64_t>(event_.values[i].number) != address) continue;
    const auto leads_on = [&](const recording::Field& each) {
      return each.role == FieldRole::kMemory && each.pointer_in == i;
    };
    const types::TypeId type = kernel_.recorded_type(types_, fields[i].type);
    const bool is_pointer = type.valid() && types_[type].kind == types::Kind::kPointer;
    if (!is_pointer && std::ranges::none_of(fields, leads_on)) return true;
  }
  return false;
}

std::string Player::hint_for(const simulator::Unrecorded& place) const {
  if (!place.hint.empty()) return place.hint;
  if (!place.is_memory) return "";
  if (place.address >= kTaskAddress && place.address < kUnknownAddress + kParentDistance)
    return "`espy record --for SCRIPT` records what a script reads of its task, `--parents N` N parents";
  if (is_unread_number(place.address)) return "`espy record --for SCRIPT` records what a script reads at this number";
  // It was cut off if it begins where memory was recorded; else it is further away.
  const bool is_cut = std::ranges::any_of(lent_, [&](const simulator::Memory::Lent& piece) {
    return place.address >= piece.address && place.address - piece.address <= piece.bytes.size();
  });
  return is_cut ? "`espy record --size BYTES` records more of each text and struct"
                : "`espy record --depth N` records structs behind N pointers, and `--size BYTES` more of each";
}

Status Player::fire(const Attachment& attachment, std::span<std::byte> context) {
  Status done = machine_.fire(attachment, context);
  if (done || !machine_.unrecorded()) return done;
  const simulator::Unrecorded& place = *machine_.unrecorded();
  missing_ = Missing{{}, place.sentence, hint_for(place)};
  for (const program::LineInfo& line : program_.programs[place.program].lines)
    if (line.insn <= place.insn) missing_->span = line.span;
  return done;
}

}  // namespace espy::replay
