#include "golden/support/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace espy::golden {

namespace {

using program::ProgramKind;
using simulator::Attachment;

constexpr std::string_view kEnter = "tracepoint:syscalls:sys_enter_";
constexpr std::string_view kExit = "tracepoint:syscalls:sys_exit_";
constexpr size_t kRawWords = 12;

void put(std::vector<std::byte>& bytes, size_t offset, uint64_t value, size_t size_bytes) {
  if (bytes.size() < offset + size_bytes) bytes.resize(offset + size_bytes);
  std::memcpy(bytes.data() + offset, &value, std::min<size_t>(size_bytes, sizeof(value)));
}

bool is_string(const std::string& value) { return value.size() >= 2 && value.front() == '"' && value.back() == '"'; }
std::string string_of(const std::string& value) { return value.substr(1, value.size() - 2); }

// The parts between the commas of "[a,b]".
std::vector<std::string> list_of(const std::string& value) {
  std::vector<std::string> out;
  for (const std::string_view part : split(std::string_view(value).substr(1, value.size() - 2), ','))
    if (!trim(part).empty()) out.emplace_back(trim(part));
  return out;
}

bool is_of_return(const program::Probe& probe) {
  return probe.provider == "kretprobe" || probe.provider == "uretprobe";
}

std::string_view chars(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

const std::string* Stage::Event::field(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

// ---- Who, where, when -----------------------------------------------------------------------------------------------

Status Stage::set_fact(const std::string& name, const std::string& value, Event& event) {
  simulator::World& world = machine_.world();
  struct Number {
    std::string_view name;
    uint32_t& where;
  };
  const Number numbers[] = {{"pid", event.task.pid}, {"tid", event.task.tid},   {"uid", event.task.uid},
                            {"gid", event.task.gid}, {"ppid", event.task.ppid}, {"cpu", world.cpu}};
  if (name == "comm" && is_string(value)) {
    event.task.comm = string_of(value);
  } else if (name == "kstack") {
    world.kernel_stack = TRY(stack(value));
  } else if (name == "ustack") {
    world.user_stack = TRY(stack(value));
  } else if (name == "nsecs") {
    world.now_ns = TRY(number(value, false));
  } else if (name == "cgroup") {
    event.task.cgroup = TRY(number(value, false));
  } else if (const auto* found = std::ranges::find(numbers, name, &Number::name); found != std::end(numbers)) {
    found->where = static_cast<uint32_t>(TRY(number(value, false)));
    if (name == "pid") event.task.tid = event.task.pid;
  } else {
    event.fields.emplace_back(name.starts_with("args.") ? name.substr(5) : name, value);
  }
  return {};
}

Result<Stage::Event> Stage::take_facts(const Fire& fire) {
  Event event;
  machine_.world().cpu = 0;
  machine_.world().kernel_stack.clear();
  machine_.world().user_stack.clear();
  for (const auto& [name, value] : fire.facts) TRY_STATUS(set_fact(name, value, event));
  set_task(event.task);
  return event;
}

Result<std::vector<uint64_t>> Stage::stack(const std::string& value) {
  std::vector<uint64_t> out;
  if (value.size() < 2 || value.front() != '[') return fail("a stack is [function+offset,...]");
  for (const std::string& frame : list_of(value)) out.push_back(TRY(number(frame, false)));
  return out;
}

void Stage::set_task(const simulator::Task& task) {
  simulator::World& world = machine_.world();
  world.task = task;
  const types::TypeId type = kernel_.find_struct(types_, "task_struct");
  if (!type) return;
  kernel_.complete(types_, type);
  const auto fill = [&](const simulator::Task& of, uint64_t leader, uint64_t parent) {
    Bytes bytes(types_[type].size_bytes);
    set_member(bytes, type, "pid", of.tid);
    set_member(bytes, type, "tgid", of.pid);
    set_member(bytes, type, "group_leader", leader);
    set_member(bytes, type, "real_parent", parent);
    if (const auto comm = types::find_member(types_, type, "comm"))
      std::memcpy(bytes.data() + comm->offset_bits / 8, of.comm.data(), std::min<size_t>(of.comm.size(), 15));
    return bytes;
  };
  // A task's leader is itself here; its address is known once it is placed.
  simulator::Task parent;
  parent.comm = "parent";
  parent.pid = parent.tid = task.ppid;
  const uint64_t parent_at = world.memory.add_kernel(chars(fill(parent, 0, 0)));
  world.memory.put_foreign(parent_at, std::span<const std::byte>(fill(parent, parent_at, parent_at)));
  world.current_task = world.memory.add_kernel(chars(fill(task, 0, 0)));
  world.memory.put_foreign(world.current_task, std::span<const std::byte>(fill(task, world.current_task, parent_at)));
}

// ---- Values ---------------------------------------------------------------------------------------------------------

Result<uint64_t> Stage::number(const std::string& value, bool is_user) {
  simulator::Memory& memory = machine_.world().memory;
  const auto add = [&](std::string_view bytes) { return is_user ? memory.add_user(bytes) : memory.add_kernel(bytes); };
  if (const auto plain = parse_int(value)) return static_cast<uint64_t>(*plain);
  if (is_string(value)) return add(string_of(value) + '\0');
  if (value.starts_with('[')) {
    Bytes pointers;
    for (const std::string& element : list_of(value)) put(pointers, pointers.size(), TRY(number(element, is_user)), 8);
    put(pointers, pointers.size(), 0, 8);
    return add(chars(pointers));
  }
  if (const size_t brace = value.find('{'); brace != std::string::npos && value.ends_with('}'))
    return structure(std::string_view(value).substr(0, brace),
                     std::string_view(value).substr(brace + 1, value.size() - brace - 2));
  const size_t plus = value.find('+');
  const auto address = kernel_.symbol_address(value.substr(0, plus));
  const auto offset = plus == std::string::npos ? std::optional<int64_t>(0) : parse_int(value.substr(plus + 1));
  if (!address || !offset) return fail(fmt::format("`{}` is no value and no kernel symbol", value));
  return *address + static_cast<uint64_t>(*offset);
}

// "a.b": the member b of the member a.
void Stage::set_member(Bytes& bytes, types::TypeId type, std::string_view path, uint64_t value) {
  uint32_t offset_bits = 0, size_bytes = 8;
  for (const std::string_view name : split(path, '.')) {
    kernel_.complete(types_, type);
    const auto member = types::find_member(types_, type, name);
    if (!member) return;
    offset_bits += member->offset_bits;
    type = member->type;
    size_bytes = std::min(types_[type].size_bytes, 8U);
  }
  std::memcpy(bytes.data() + offset_bits / 8, &value, size_bytes);
}

Result<uint64_t> Stage::structure(std::string_view name, std::string_view members) {
  const types::TypeId type = kernel_.find_struct(types_, name);
  if (!type) return fail(fmt::format("the kernel has no struct {}", name));
  kernel_.complete(types_, type);
  Bytes bytes(types_[type].size_bytes);
  for (const std::string_view member : split(members, ',')) {
    const size_t equals = member.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string value(trim(member.substr(equals + 1)));
    const std::string_view path = trim(member.substr(0, equals));
    const auto found = types::find_member(types_, type, path);
    if (is_string(value) && found && types_[found->type].kind == types::Kind::kString) {
      std::memcpy(bytes.data() + found->offset_bits / 8, value.data() + 1,
                  std::min<size_t>(value.size() - 2, types_[found->type].size_bytes - 1));
    } else {
      set_member(bytes, type, path, TRY(number(value, false)));
    }
  }
  return machine_.world().memory.add_kernel(chars(bytes));
}

Result<uint64_t> Stage::field_number(const Event& event, std::string_view name, bool is_user) {
  const std::string* value = event.field(name);
  return value == nullptr ? Result<uint64_t>(0) : number(*value, is_user);
}

// ---- Contexts -------------------------------------------------------------------------------------------------------

Result<Stage::Bytes> Stage::registers(const Event& event, bool is_user) {
  const kernel::Arch& arch = kernel_.arch();
  Bytes out(arch.pt_regs_size_bytes);
  for (const auto& [name, text] : event.fields) {
    const uint64_t value = TRY(number(text, is_user));
    const auto reg = kernel::find_register(arch, name);
    const int64_t argument = name.starts_with("arg") ? parse_int(name.substr(3)).value_or(-1) : -1;
    if (reg) {
      put(out, reg->offset_bytes, value, reg->size_bytes);
    } else if (argument >= 0 && static_cast<size_t>(argument) < arch.argument_offsets.size()) {
      put(out, arch.argument_offsets[static_cast<size_t>(argument)], value, 8);
    } else if (name == "retval") {
      put(out, arch.return_value_offset, value, 8);
    } else {
      return fail(fmt::format("`{}` is neither a register, argN, nor retval", name));
    }
  }
  return out;
}

// A tracepoint's record, as tracefs describes it. Strings of variable length lie behind the fields.
Result<Stage::Bytes> Stage::record(const program::Probe& probe, const Event& event) {
  const kernel::Tracepoint tracepoint = TRY(kernel_.tracepoint(types_, probe.target, probe.function));
  Bytes out;
  for (const kernel::TracepointField& field : tracepoint.fields)
    put(out, field.offset_bytes + field.size_bytes - 1, 0, 1);
  for (const auto& [name, value] : event.fields) {
    const auto field = std::ranges::find(tracepoint.fields, name, &kernel::TracepointField::name);
    if (field == tracepoint.fields.end()) return fail(fmt::format("{} has no field `{}`", probe.name, name));
    if (!is_string(value)) {
      put(out, field->offset_bytes, TRY(number(value, false)), field->size_bytes);
      continue;
    }
    const std::string text = string_of(value);
    size_t where = field->offset_bytes;
    if (field->is_data_loc) {
      where = out.size();
      const size_t base = field->is_relative_loc ? field->offset_bytes + 4 : 0;
      put(out, field->offset_bytes, (text.size() + 1) << 16 | (where - base), 4);
      out.resize(where + text.size() + 1);
    } else if (types_[field->type].kind != types::Kind::kString) {
      put(out, where, TRY(number(value, false)), 8);
      continue;
    }
    std::memcpy(out.data() + where, text.data(), std::min(text.size(), out.size() - where));
  }
  out.resize((out.size() + 7) & ~size_t{7});
  return out;
}

// The words that raw tracepoints, fentry and fexit get: a parameter each, then what was returned.
Result<Stage::Bytes> Stage::words(const program::Probe& probe, const Event& event) {
  const bool is_function = probe.provider == "fentry" || probe.provider == "fexit";
  const auto prototype =
      is_function ? kernel_.find_function(types_, probe.function) : kernel_.find_raw_tracepoint(types_, probe.function);
  const size_t count = prototype ? prototype->parameters.size() : kRawWords;
  Bytes out(8 * (count + (probe.provider == "fexit" ? 1 : 0)));
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = TRY(field_number(event, fmt::format("arg{}", i), false));
    if (prototype && event.field(prototype->parameters[i].name) != nullptr)
      value = TRY(field_number(event, prototype->parameters[i].name, false));
    put(out, 8 * i, value, 8);
  }
  if (probe.provider == "fexit") put(out, 8 * count, TRY(field_number(event, "retval", false)), 8);
  return out;
}

Result<Stage::Bytes> Stage::context(const program::Probe& probe, const Event& event) {
  const bool is_user = probe.provider.starts_with("u");  // uprobe, uretprobe, usdt
  switch (program_.programs[probe.program].kind) {
    case ProgramKind::kTracepoint: return record(probe, event);
    case ProgramKind::kKprobe: return registers(event, is_user);
    case ProgramKind::kPerfEvent: {  // struct bpf_perf_event_data: registers, sample_period, addr
      Bytes out = TRY(registers(event, true));
      out.resize(out.size() + 16);
      return out;
    }
    default: return words(probe, event);
  }
}

// ---- Firing ---------------------------------------------------------------------------------------------------------

// A system call reaches all programs on the raw tracepoint, as in the kernel.
Status Stage::fire_syscall(const Fire& fire, const Event& event) {
  const bool is_enter = fire.probe.starts_with(kEnter);
  const std::string name = fire.probe.substr(is_enter ? kEnter.size() : kExit.size());
  const auto call_number = kernel_.syscall_number(name);
  if (!call_number) return fail(fmt::format("there is no system call {}", name));
  const kernel::Arch& arch = kernel_.arch();
  Bytes regs(arch.pt_regs_size_bytes);
  put(regs, arch.syscall_number_offset, *call_number, arch.syscall_number_bytes);
  Bytes context(16);
  if (is_enter) {
    const kernel::Tracepoint tracepoint = TRY(kernel_.tracepoint(types_, "syscalls", "sys_enter_" + name));
    size_t argument = 0;
    for (const kernel::TracepointField& field : tracepoint.fields) {
      if (field.name == "__syscall_nr") continue;
      put(regs, arch.syscall_argument_offsets[argument++], TRY(field_number(event, field.name, true)), 8);
    }
    put(context, 8, *call_number, 8);
  } else {
    put(context, 8, TRY(field_number(event, "ret", true)), 8);
  }
  put(context, 0, machine_.world().memory.add_kernel(chars(regs)), 8);
  for (const Attachment& attachment : std::vector(machine_.attachments()))
    if (attachment.raw_tracepoint == (is_enter ? "sys_enter" : "sys_exit"))
      TRY_STATUS(machine_.fire(attachment, context));
  return {};
}

// In a session the return comes with the cookie of the entry.
uint32_t Stage::cookie_of(const program::Probe& probe, uint32_t index) const {
  if (!is_of_return(probe)) return index;
  const auto is_entry = [&](const program::Probe& each) {
    return each.program == probe.program && each.function == probe.function && !is_of_return(each);
  };
  const auto entry = std::ranges::find_if(program_.probes, is_entry);
  return entry == program_.probes.end() ? index : static_cast<uint32_t>(entry - program_.probes.begin());
}

Status Stage::fire_probe(const program::Probe& probe, uint32_t index, const Event& event) {
  const Attachment* chosen = nullptr;
  const uint32_t cookie = cookie_of(probe, index);
  for (const Attachment& attachment : machine_.attachments()) {
    if (attachment.program != probe.program) continue;
    if (!attachment.raw_tracepoint.empty() && attachment.raw_tracepoint != probe.function) continue;
    if (chosen == nullptr || attachment.cookie == cookie) chosen = &attachment;
  }
  if (chosen == nullptr) return fail(fmt::format("{} is not attached", probe.name));
  Bytes bytes = TRY(context(probe, event));
  machine_.world().is_return = is_of_return(probe);
  return machine_.fire(*chosen, bytes);
}

Status Stage::fire(const Fire& fire) {
  const Event event = TRY(take_facts(fire));
  const bool is_call = fire.probe.starts_with(kEnter) || fire.probe.starts_with(kExit);
  const bool is_raw = std::ranges::any_of(machine_.attachments(), [](const Attachment& attachment) {
    return attachment.raw_tracepoint == "sys_enter" || attachment.raw_tracepoint == "sys_exit";
  });
  if (is_call && is_raw) return fire_syscall(fire, event);
  bool is_known = false;
  for (const program::ProbeId id : program_.probes.ids()) {
    if (program_.probes[id].name != fire.probe) continue;
    is_known = true;
    TRY_STATUS(fire_probe(program_.probes[id], id.index, event));
  }
  if (is_known) return {};
  std::string names;
  for (const program::Probe& probe : program_.probes) names += " " + probe.name;
  return fail(fmt::format("nothing is attached to {}; there are:{}", fire.probe, names));
}

}  // namespace espy::golden
