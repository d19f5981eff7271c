#include "lower/merge_programs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "ir/builder.h"
#include "lower/control.h"

namespace espy::lower {
namespace {

using check::Unit;
using ir::BlockId;
using ir::ValueId;
using program::ProbeId;
using spec::CallBoundary;

// More actions on one hook become a second program: the time to optimize a function grows faster than its size.
constexpr size_t kMaxParts = 32;

// ---- Grouping

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

}  // namespace

std::vector<Group> group_units(const ModuleContext& module, bool separate_programs) {
  if (!separate_programs) return Grouping(module).all();
  std::vector<Group> out;
  for (const Unit& unit : module.checked.units)
    if (unit.action != nullptr) out.push_back({Group::Kind::kSingle, {&unit}});
  return out;
}

ir::Function merge(const ModuleContext& module, const Group& group, std::vector<ir::Function> parts) {
  switch (group.kind) {
    case Group::Kind::kSingle: return std::move(parts.front());
    case Group::Kind::kSession: return merge_session(parts[0], parts[1], group.is_return_id);
    case Group::Kind::kByNumber: return merge_by_number(module.program, parts);
  }
  UNREACHABLE("kind of group");
}

}  // namespace espy::lower
