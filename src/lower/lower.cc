// Which units share a BPF program, and how they are merged.
//
// The problem: each action is a program, but some are attached to the same hook. All system calls fire two raw
// tracepoints, so a script with actions on ten of them would run ten programs at each system call of the machine, some
// 70 ns each, nine or ten of which do nothing. And `kprobe:f { ... } kretprobe:f { ... }`, the usual way to time a
// call, would be two links, which the kernel runs one after the other; a call whose entry was missed would still be
// seen to return.
//
// The solution: such units become parts of one program. For system calls, the number is read once, and dismissed
// at once if no part has it: that is what the calls pay that are not traced. Then each part compares it with its own.
// For function calls, kernels from 6.10 (kprobes) and 6.13 (uprobes) run one program at entry and return, a session,
// and the kernel function bpf_session_is_return() distinguishes the two. The number of probes does not change; they
// refer to the same program.
//
// The kernel tracks the return of at most 64 nested calls of a thread, and does not report that it misses others. In a
// session, the entry sees the depth and counts the calls whose return will be missed. So a uretprobe alone is also a
// session, whose entry does nothing else.
//
// A session passes the same cookie at entry and return: the index of the entry's probe. Both units probe the same
// functions in the same order, so the index of the return's probe is a constant distance away.
//
// The order of the script holds on each hook: of units at one function either all form sessions or none.
//
// Limits: the merged program may exceed the verifier's limits or the stack. The caller then asks for separate programs.
//
// References: kernel commits "bpf: Add support for kprobe session attach" (6.10), "bpf: Add support for uprobe multi
// session attach" (6.13).
#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "lower/lowering.h"
#include "lower/mappings.h"
#include "lower/process_ids.h"

namespace espy::lower {
namespace {

using check::Unit;
using program::Hook;
using program::ProbeId;
using program::ProgramId;
using program::ProgramKind;
using spec::CallBoundary;

// ---- Grouping

// The units of one program, usually one.
struct Group {
  enum class Kind : uint8_t { kSingle, kSession, kByNumber };
  Kind kind = Kind::kSingle;
  std::vector<const Unit*> units;  // kSession: entry and return, or return alone
  uint32_t is_return_id = 0;       // kSession: BTF id of bpf_session_is_return()
  int64_t cookie_distance = 0;     // kSession: from the cookie to the index of the return's probe
};

// More actions on one hook become a second program: the time to optimize a function grows faster than its size.
constexpr size_t kMaxParts = 32;

bool is_at(const Unit& unit, CallBoundary boundary) {
  return unit.action != nullptr && unit.context.session_attach_type != 0 && unit.context.boundary == boundary;
}

int64_t distance_at(const Unit& entry, const Unit& exit, size_t i) {
  return int64_t{exit.probes[i].index} - int64_t{entry.probes[i].index};
}

bool are_boundaries_of_same_calls(const ModuleContext& module, const Unit& entry, const Unit& exit) {
  if (entry.context.session_attach_type != exit.context.session_attach_type) return false;
  if (entry.probes.size() != exit.probes.size()) return false;
  const auto function = [&](ProbeId id) { return location_of(module.program.probes[id]); };
  for (size_t i = 0; i < entry.probes.size(); ++i) {
    if (function(entry.probes[i]) != function(exit.probes[i])) return false;
    if (distance_at(entry, exit, i) != distance_at(entry, exit, 0)) return false;
  }
  // A program that may sleep cannot take stacks.
  const bool may_sleep = entry.context.may_sleep || exit.context.may_sleep;
  return !may_sleep || module.takes_stacks(entry) == module.takes_stacks(exit);
}

class Grouping {
 public:
  explicit Grouping(const ModuleContext& module) : module_(module) {}

  std::vector<Group> all() {
    for (const Unit& unit : module_.checked.units)
      if (is_at(unit, CallBoundary::kEntry) || is_at(unit, CallBoundary::kReturn)) add_places(unit);
    for (const Unit& unit : module_.checked.units)
      if (is_at(unit, CallBoundary::kEntry)) find_exit(unit);
    for (const Unit& unit : module_.checked.units)
      if (unit.context.deepest_nesting != 0 && is_at(unit, CallBoundary::kReturn) && !in_session_.contains(&unit))
        add_session({&unit}, 0);
    for (const Unit& unit : module_.checked.units)
      if (unit.action != nullptr && !in_session_.contains(&unit)) add(unit);
    return std::move(groups_);
  }

 private:
  // What the kernel probes. Functions of one address have several names.
  using Place = std::tuple<std::string_view, std::string_view, uint64_t>;
  Place place_of(ProbeId id) const {
    const program::Probe& probe = module_.program.probes[id];
    if (probe.address != 0) return {probe.target, "", probe.address};
    return {probe.target, probe.function, probe.offset};
  }

  struct Units {
    std::vector<const Unit*> entries, exits;
    bool operator==(const Units&) const = default;
  };

  void add_places(const Unit& unit) {
    for (const ProbeId id : unit.probes) {
      Units& here = units_at_[place_of(id)];
      (unit.context.boundary == CallBoundary::kEntry ? here.entries : here.exits).push_back(&unit);
    }
  }

  // The exit for a session with an entry; null if there is none. A session has one place in the order of programs. So
  // if several units probe the functions, all of them must form sessions, which the kernel runs in one order at entries
  // and exits.
  const Unit* exit_of(const Unit& entry) const {
    const Units& here = units_at_.at(place_of(entry.probes.front()));
    const size_t count = here.entries.size();
    if (here.exits.size() != count) return nullptr;
    const auto is_same = [&](ProbeId id) { return units_at_.at(place_of(id)) == here; };
    if (!std::ranges::all_of(entry.probes, is_same)) return nullptr;
    for (size_t i = 0; i < count; ++i) {
      const Unit &begin = *here.entries[i], &end = *here.exits[i];
      if (!are_boundaries_of_same_calls(module_, begin, end)) return nullptr;
      if (count > 1 && begin.context.is_last_attached_first != end.context.is_last_attached_first) return nullptr;
    }
    const auto index = std::ranges::find(here.entries, &entry) - here.entries.begin();
    return here.exits[static_cast<size_t>(index)];
  }

  void find_exit(const Unit& entry) {
    if (const Unit* exit = exit_of(entry)) add_session({&entry, exit}, distance_at(entry, *exit, 0));
  }

  void add_session(const std::vector<const Unit*>& units, int64_t cookie_distance) {
    const auto is_return = module_.kernel.kfunc_id("bpf_session_is_return");
    if (!is_return) return;
    in_session_.insert(units.begin(), units.end());
    groups_.push_back({Group::Kind::kSession, units, *is_return, cookie_distance});
  }

  void add(const Unit& unit) {
    const bool is_by_number = unit.context.dispatch == spec::ProbeContext::Dispatch::kNumber;
    const auto same = std::ranges::find_if(groups_, [&](const Group& group) {
      const spec::ProbeContext& other = group.units.front()->context;
      return is_by_number && other.dispatch == unit.context.dispatch && other.hook == unit.context.hook &&
             group.units.size() < kMaxParts;
    });
    if (same == groups_.end()) {
      groups_.push_back({Group::Kind::kSingle, {&unit}});
    } else {
      same->kind = Group::Kind::kByNumber;
      same->units.push_back(&unit);
    }
  }

  const ModuleContext& module_;
  std::map<Place, Units> units_at_;
  std::set<const Unit*> in_session_;
  std::vector<Group> groups_;
};

// Groups all units that have an action, in their order. With `separate_programs`, each is a group of its own.
std::vector<Group> group_units(const ModuleContext& module, bool separate_programs) {
  if (!separate_programs) return Grouping(module).all();
  std::vector<Group> out;
  for (const Unit& unit : module.checked.units)
    if (unit.action != nullptr) out.push_back({Group::Kind::kSingle, {&unit}});
  return out;
}

// ---- Merging

// Appends a copy of `from` to `to`, except for the first `common_slots` slots, which they share. Returns the copy's
// entry block. If `next` is given, returns are replaced by jumps to it.
BlockId append(ir::Function& to, const ir::Function& from, uint32_t common_slots, std::optional<BlockId> next) {
  const uint32_t values = to.values.next_id().index;
  const uint32_t slots = to.slots.next_id().index - common_slots;
  const BlockId first = to.blocks.next_id();
  const auto move_all = [&](std::vector<ValueId>& list) {
    for (ValueId& id : list) id.index += values;
  };
  for (const ir::SlotId id : from.slots.ids())
    if (id.index >= common_slots) to.slots.add(from.slots[id]);
  for (ir::Instruction instruction : from.values) {
    if (instruction.op == ir::Op::k_ret && next) {
      to.values.add({.op = ir::Op::k_jump, .targets = {{*next, {}}}, .span = instruction.span});
      continue;
    }
    move_all(instruction.operands);
    if (instruction.slot.valid() && instruction.slot.index >= common_slots) instruction.slot.index += slots;
    for (ir::Target& target : instruction.targets) {
      target.block.index += first.index;
      move_all(target.arguments);
    }
    to.values.add(std::move(instruction));
  }
  for (ir::Block block : from.blocks) {
    move_all(block.parameters);
    move_all(block.instructions);
    to.blocks.add(std::move(block));
  }
  return first;
}

ir::Function merge_session(const ir::Function& entry, const ir::Function& exit, uint32_t is_return_id) {
  ir::Function out{.name = entry.name, .parameter_count = entry.parameter_count};
  ir::Builder ir(out);
  const BlockId start = ir.add_block("boundary");
  const BlockId at_entry = append(out, entry, 0, std::nullopt);
  const BlockId at_exit = append(out, exit, 0, std::nullopt);
  ir.enter(start);
  // Current kernels ignore the argument; later ones require the context.
  const ValueId answer = ir.kfunc(is_return_id, {ir.context()});
  ir.branch(ir::Condition::ne, ir.unary(ir::Op::k_zext8, answer), 0, at_exit, at_entry);
  return out;
}

// Chains the parts after the dismissal: a part whose number does not match continues with the next one.
ir::Function merge_by_number(const program::Program& program, const std::vector<ir::Function>& parts) {
  const ir::Function& dismissal = parts.front();
  ir::Function out{.name = dismissal.name, .parameter_count = dismissal.parameter_count};
  ir::Builder ir(out);
  out.slots.add(dismissal.slots[ir::SlotId{0}]);
  append(out, dismissal, 1, std::nullopt);
  const BlockId wanted{out.blocks.next_id().index - 1};
  out.blocks[wanted].instructions.pop_back();
  ir.enter(wanted);
  end_program_if(ir, ir::Condition::ne, ir.load(8, ir.map_value(program.globals, program.exit_flag_offset)), 0);
  BlockId begin = ir.add_block("number");
  ir.jump(begin);
  for (const ir::Function& part : std::span(parts).subspan(1)) {
    const bool is_last = &part == &parts.back();
    const BlockId next = is_last ? BlockId{} : ir.add_block("next");
    const BlockId first = append(out, part, 1, is_last ? std::nullopt : std::optional(next));
    ir.enter(begin);
    ir.jump(first);
    begin = next;
  }
  return out;
}

// Merges the main functions of the parts, one for each unit; for a session, always entry and return. With kByNumber,
// the first part is the dismissal (Lowering::lower_dismissal), the parts' first slot, the number, becomes one, and the
// program returns at once after exit(); a part that calls exit() does not keep the parts after it from seeing the same
// event.
ir::Function merge(const ModuleContext& module, const Group& group, std::vector<ir::Function> parts) {
  switch (group.kind) {
    case Group::Kind::kSingle: return std::move(parts.front());
    case Group::Kind::kSession: return merge_session(parts[0], parts[1], group.is_return_id);
    case Group::Kind::kByNumber: return merge_by_number(module.program, parts);
  }
  UNREACHABLE("kind of group");
}

// ---- The time of a program by its own clock, where the kernel does not measure it

// Writes, in the current block, what ends a run that began at the time in `begun`, 0 if it is not timed.
void write_end(ir::Builder& ir, const program::Program& program, ProgramId id, ir::SlotId begun) {
  const ValueId begun_ns = ir.load(8, ir.slot(begun));
  when(ir, ir::Condition::ne, begun_ns, ir.constant(0), [&] {
    const ValueId taken_ns = ir.binary(ir::Op::k_sub, ir.call(ir::Helper::ktime_get_ns, {}), begun_ns);
    const uint32_t offset = program.own_times.offset_bytes + id.index * 16;
    ir.atomic_add(8, ir.map_value(program.globals, offset), ir.constant(1));
    ir.atomic_add(8, ir.map_value(program.globals, offset + 8), taken_ns);
  });
}

// Makes a program's main function add its runs and their time to program.own_times while user space has set the switch
// there. Requires that the switch and the times have their places.
void add_own_time(const program::Program& program, ProgramId id, ir::Function& main) {
  ir::Builder ir(main);
  const ir::SlotId begun = ir.add_variable("begun");
  const BlockId entry{0};
  const BlockId body = ir.add_block("timed");
  std::swap(main.blocks[entry].instructions, main.blocks[body].instructions);
  ir.enter(entry);
  ir.store(8, ir.slot(begun), ir.constant(0));
  const ValueId is_on = ir.load(8, ir.map_value(program.globals, program.own_times.switch_offset));
  when(ir, ir::Condition::ne, is_on, ir.constant(0),
       [&] { ir.store(8, ir.slot(begun), ir.call(ir::Helper::ktime_get_ns, {})); });
  ir.jump(body);
  const BlockId first_new = main.blocks.next_id();
  for (BlockId block{0}; block.index < first_new.index; ++block.index) {
    if (main.blocks[block].instructions.empty()) continue;
    const ValueId last = main.blocks[block].instructions.back();
    if (main.values[last].op != ir::Op::k_ret) continue;
    main.blocks[block].instructions.pop_back();
    ir.enter(block);
    write_end(ir, program, id, begun);
    main.blocks[ir.block()].instructions.push_back(last);
  }
}

// ---- Programs

Hook hook_of(const spec::ProbeContext& context) {
  if (context.after_exit == spec::AfterExit::kAlways) return Hook::kNone;
  switch (context.kind) {
    case ProgramKind::kRawTracepoint: return context.is_at_all_system_calls ? Hook::kSystemCalls : Hook::kRawTracepoint;
    case ProgramKind::kTracingRawTracepoint: return Hook::kRawTracepoint;
    case ProgramKind::kTracepoint: return Hook::kTracepoint;
    case ProgramKind::kKprobe: return context.is_preemptible ? Hook::kUserFunction : Hook::kKernelFunction;
    case ProgramKind::kFentry:
    case ProgramKind::kFexit: return Hook::kTrampoline;
    case ProgramKind::kSyscall:
    case ProgramKind::kPerfEvent:
    case ProgramKind::kIter: break;
  }
  return Hook::kOther;
}

// Programs of user probes have the type of kprobes. Kprobes are not preempted, and skipped within one another, so the
// kernel gives their type a stack of the CPU (bpf_enable_priv_stack() in kernel/bpf/verifier.c). User probes sleep, are
// preempted, and are not skipped: there, two threads would write to one frame. All other programs with such a stack
// are skipped while their CPU runs them (bpf_prog_active, bpf_prog::active); iterators and programs that are run by
// bpf(2) have none, or are not preempted.
bool needs_thread_stack(const ModuleContext& module, const spec::ProbeContext& context) {
  return hook_of(context) == Hook::kUserFunction && module.kernel.has(kernel::Feature::kPrivateStack);
}

ProgramId add_program(ModuleContext& module, const Group& group) {
  const spec::ProbeContext& context = group.units.front()->context;
  const ProgramId id = module.program.programs.next_id();
  const bool is_session = group.kind == Group::Kind::kSession;
  module.program.programs.add(
      {.name = "espy_" + std::to_string(id.index),
       .kind = context.kind,
       .hook = hook_of(context),
       .sees_returns = is_session || context.boundary == spec::CallBoundary::kReturn,
       .keeps_thread_stack = needs_thread_stack(module, context),
       .expected_attach_type = is_session ? context.session_attach_type : context.expected_attach_type,
       .attach_btf_id = context.attach_btf_id,
       .attach_btf_module = context.attach_btf_module,
       .attach_program = context.attach_program,
       .is_last_attached_first = context.is_last_attached_first});
  return id;
}

// Not what the script runs to show its results, nor iterators, whose walk would have holes.
bool may_be_off(const Group& group) {
  const spec::ProbeContext& context = group.units.front()->context;
  return !context.fires_rarely && context.kind != ProgramKind::kIter && context.after_exit == spec::AfterExit::kStop;
}

Part part_of(const Group& group, const Unit& unit) {
  Part part{.shares_number = group.kind == Group::Kind::kByNumber};
  if (group.kind != Group::Kind::kSession) return part;
  part.begins_session = unit.context.boundary == spec::CallBoundary::kEntry;
  part.ends_session = !part.begins_session;
  if (unit.context.boundary == spec::CallBoundary::kReturn) part.cookie_distance = group.cookie_distance;
  // The entry counts calls that are nested too deeply for the return to be traced.
  if (unit.context.boundary == spec::CallBoundary::kEntry)
    part.max_traced_depth = group.units.back()->context.deepest_nesting;
  return part;
}

// All numbers that a group wants, sorted.
std::vector<uint64_t> numbers_of(const ModuleContext& module, const Group& group) {
  std::set<uint64_t> numbers;
  for (const Unit* unit : group.units)
    for (const ProbeId probe : unit->probes) numbers.insert(module.program.probes[probe].number);
  return {numbers.begin(), numbers.end()};
}

void add_group(ModuleContext& module, const Group& group) {
  const ProgramId id = add_program(module, group);
  if (may_be_off(group)) {
    module.program.gates.is_gated.resize(id.index + 1);
    module.program.gates.is_gated[id.index] = true;
    if (module.checked.config.counting.has_gates && module.checked.config.counting.cost) module.add_caller_table(id);
  }
  ir::Unit out{id, {module.ir.functions.add({})}};
  std::vector<ir::Function> parts;
  const Unit& first = *group.units.front();
  if (group.kind == Group::Kind::kSession && group.units.size() == 1)
    parts.push_back(
        Lowering(module, first, out, {.begins_session = true, .max_traced_depth = first.context.deepest_nesting})
            .lower_entry_alone());
  if (group.kind == Group::Kind::kByNumber)
    parts.push_back(Lowering(module, first, out, part_of(group, first)).lower_dismissal(numbers_of(module, group)));
  for (const Unit* unit : group.units) {
    for (const ProbeId probe : unit->probes) module.program.probes[probe].program = id;
    if (module.checked.config.counting.has_gates)
      for (const program::ScriptMapId map : module.maps_assigned_by(*unit))
        module.program.script_maps[map].writers.push_back(id);
    parts.push_back(Lowering(module, *unit, out, part_of(group, *unit)).lower_action());
  }
  ir::Function merged = merge(module, group, std::move(parts));
  if (module.program.own_times.switch_offset != 0) add_own_time(module.program, id, merged);
  module.ir.functions[out.functions.front()] = std::move(merged);
  module.ir.units.push_back(std::move(out));
}

}  // namespace

Lowered lower(const check::Checked& checked, types::Types& types, kernel::Kernel& kernel, const Options& options) {
  ModuleContext module{checked, types, kernel};
  module.makes_loops_for_unroll = options.loops_for_unroll;
  module.program.probes = checked.probes;
  module.add_fixed_maps();
  if (checked.config.counting.losses || checked.config.counting.hits) module.add_hit_counters();
  module.add_script_maps();
  add_cgroup_map(module);
  add_followed_map(module);
  module.choose_ring_size();
  const std::vector<Group> groups = group_units(module, options.separate_programs);
  if (checked.config.counting.has_gates) module.add_gates(static_cast<uint32_t>(groups.size()));
  if (checked.config.counting.cost && !kernel.has(kernel::Feature::kRunStatistics))
    module.add_own_times(static_cast<uint32_t>(groups.size()));
  for (const Group& group : groups) add_group(module, group);
  add_followers(module);
  add_first_thread_watch(module);
  add_file_key_program(module);
  module.finish();
  const bool has_merged_programs =
      std::ranges::any_of(groups, [](const Group& group) { return group.units.size() > 1; });
  return {std::move(module.ir), std::move(module.program), has_merged_programs, module.has_copies};
}

}  // namespace espy::lower
