#include "lower/module_context.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "program/layout.h"
#include "program/program.h"
#include "spec/builtin.h"

namespace espy::lower {
namespace {

using program::Gates;
using program::Hook;
using program::MapKind;
using program::ProgramId;
using program::Storage;

constexpr uint32_t kMostRawTracepoints = 4;  // with tables of callers: those of the others would take much memory
constexpr uint32_t kSmallRingBytes = 256 * 1024;
constexpr uint32_t kMostOldRingBytes = 2 * 1024 * 1024;  // with its head, shorter than 4 MiB
constexpr uint32_t kLargeRingBytes = 4 * 1024 * 1024;
constexpr uint64_t kLeastRingBytes = 128 * 1024;  // of those that perf_rb_pages asks for
constexpr uint64_t kMostRingBytes = 256 * 1024 * 1024;
constexpr uint64_t kAllRingsBytes = 256 * 1024 * 1024;
constexpr uint32_t kStacks = 8192;                     // of a type, in all its maps
constexpr uint32_t kSlotBytes = 2048;                  // of an element with a slot for each CPU
constexpr uint64_t kSlotMapBytes = 256 * 1024 * 1024;  // of all elements with slots
// Of a map, keys and values: those that two strings of 1024 bytes make are 8.4 MB. Takes 8 ms to create.
constexpr uint64_t kPreallocatedBytes = 16 * 1024 * 1024;
// Where a script asks for many keys, new ones take half as long if the map is preallocated: 100,000 of count() 0.5 us
// each, not 1.0. The map is then created in 1 ms for each 2 MB.
constexpr uint64_t kManyKeys = 16 * 1024;
constexpr uint64_t kManyKeysBytes = 256 * 1024 * 1024;

bool is_per_cpu(MapKind kind) { return kind == MapKind::kPercpuHash || kind == MapKind::kLruPercpuHash; }

// Only aggregations are merged over CPUs. Other values have one copy, even if the map is declared per CPU.
MapKind hash_kind(const check::CheckedMap& map, bool is_aggregation) {
  const bool is_lru = map.kind == MapKind::kLruHash || map.kind == MapKind::kLruPercpuHash;
  if (is_aggregation) return is_lru ? MapKind::kLruPercpuHash : MapKind::kPercpuHash;
  return is_lru ? MapKind::kLruHash : MapKind::kHash;
}

// Programs that are turned off together share a table.
bool shares_table(Hook hook) {
  return hook == Hook::kUserFunction || hook == Hook::kKernelFunction || hook == Hook::kSystemCalls;
}

bool may_emit(const check::Unit& unit) {
  return std::ranges::any_of(unit.exprs.ids(), [&](check::ExprId id) {
    const spec::Builtin* builtin = unit.fact(id).builtin;
    return builtin && builtin->handle;
  });
}

// The kernel allocates a hash's elements from a per-CPU cache, which may hold as few as one and is refilled by an
// interrupt. With interrupts off, as in the scheduler's tracepoints and in timers, the second new key would be lost.
// System calls, user functions, iterators and probes that espy runs itself fire with interrupts on.
bool may_fire_with_interrupts_off(const check::Unit& unit) {
  const spec::ProbeContext& context = unit.context;
  switch (context.kind) {
    case program::ProgramKind::kSyscall:
    case program::ProgramKind::kIter: return false;
    case program::ProgramKind::kKprobe: return !context.is_preemptible;  // else it is a user probe
    default: return context.dispatch != spec::ProbeContext::Dispatch::kNumber;
  }
}

}  // namespace

uint32_t ModuleContext::cpu_slots() const { return std::bit_ceil(std::max(program.cpu_count, 1u)); }

TypeId ModuleContext::complete(TypeId type) {
  if (types[type].kind == types::Kind::kStruct && !types[type].complete) kernel.complete(types, type);
  return type;
}

uint32_t ModuleContext::fired_index(types::Kind kind, program::ProbeId probe) {
  std::vector<uint32_t>& indices = fired_indices[kind];
  if (indices.empty()) indices = program::first_of_each_name(kind, program.probes);
  return indices[probe.index];
}

uint32_t ModuleContext::add_global(uint32_t size_bytes, uint32_t align_bytes) {
  const auto offset = round_up(globals_bytes, align_bytes);
  globals_bytes = offset + size_bytes;
  return offset;
}

uint32_t ModuleContext::add_constant(std::string_view bytes) {
  if (const auto found = constant_offsets.find(bytes); found != constant_offsets.end()) return found->second;
  constants.resize(round_up(constants.size(), 8));
  const auto offset = static_cast<uint32_t>(constants.size());
  constants += bytes;
  constant_offsets.emplace(bytes, offset);
  return offset;
}

uint32_t ModuleContext::loss_counter(program::LossKind kind, program::ProgramId by, std::string_view what,
                                     source::Span span) {
  for (const program::LossCounter& counter : program.loss_counters)
    if (counter.program == by && counter.what == what && counter.span == span) return counter.offset_bytes;
  const uint32_t offset = add_global(8, 8);
  program.loss_counters.push_back({kind, by, std::string(what), offset, span});
  return offset;
}

void ModuleContext::count_loss(ir::Builder& builder, program::ProgramId by, program::LossKind kind,
                               std::string_view what, source::Span span) {
  const uint32_t offset = loss_counter(kind, by, what, span);
  builder.atomic_add(8, builder.map_value(program.globals, offset), builder.constant(1));
}

MapId ModuleContext::scratch_map() {
  if (!scratch.valid()) scratch = program.maps.add({.name = "scratch"});
  return scratch;
}

MapId ModuleContext::ring_map() {
  if (!program.ring.valid())
    program.ring = program.maps.add({.name = "ring", .max_entries = program.cpu_count, .is_mmapable = true});
  return program.ring;
}

program::StackMaps ModuleContext::stack_maps(TypeId type) {
  const auto known = std::ranges::find(program.stacks, type, &program::StackMaps::type);
  if (known != program.stacks.end()) return *known;
  constexpr uint32_t kFrameBytes = 8;  // an address, in all modes
  const uint32_t stack_bytes = std::max(types[type].count, 1u) * kFrameBytes;
  const auto most = static_cast<uint32_t>(checked.config.limits.max_stacks);
  const bool keeps_by_content = kernel.has(kernel::Feature::kHashAllocation);
  const uint32_t map_count = keeps_by_content ? 2 : 8;
  program::StackMaps out{.type = type};
  for (uint32_t i = 0; i < map_count; ++i)
    out.by_hash.push_back(program.maps.add({.name = "stacks",
                                            .kind = MapKind::kStackTrace,
                                            .value_size = stack_bytes,
                                            .max_entries = std::bit_ceil(std::max(most / 16, 1u))}));
  if (keeps_by_content) {
    out.by_content = program.maps.add({.name = "stack_numbers",
                                       .kind = MapKind::kHash,
                                       .key_size = stack_bytes,
                                       .value_size = 8,
                                       .max_entries = most});
    out.contents = program.maps.add({.name = "stack_contents",
                                     .kind = MapKind::kHash,
                                     .key_size = 4,
                                     .value_size = stack_bytes,
                                     .max_entries = most});
    out.last_number_offset = add_global(8, 8);
  }
  program.stacks.push_back(out);
  return out;
}

void ModuleContext::add_fixed_maps() {
  program.arch = &kernel.arch();
  program.page_size_bytes = kernel.page_size_bytes();
  program.cpu_count = std::max(kernel.cpu_count(), 1u);
  program.globals = program.maps.add({.name = "globals", .is_mmapable = true});
  program.rodata = program.maps.add({.name = "rodata", .is_read_only = true});
  program.exit_flag_offset = add_global(8, kCacheLineBytes);
  program.exit_status_offset = add_global(8, 8);
  program.start_offset = add_global(8, 8);
  program.sequence_offset = add_global(8, kCacheLineBytes);
  globals_bytes = round_up(globals_bytes, kCacheLineBytes);
}

// A power of two of words, so that `and` bounds a probe's index for the verifier.
program::HitCounters ModuleContext::add_probe_counters() {
  const auto probes = static_cast<uint32_t>(program.probes.size());
  program::HitCounters out;
  out.stride_bytes = std::max(std::bit_ceil(probes) * 8, kCacheLineBytes);
  out.offset_bytes = add_global(out.stride_bytes * cpu_slots(), kCacheLineBytes);
  return out;
}

void ModuleContext::add_hit_counters() { program.hits = add_probe_counters(); }

// Returns whether the script probes entry and return of anything.
bool ModuleContext::pair_calls() {
  using spec::CallBoundary;
  using Place = std::tuple<bool, std::string, std::string, uint64_t, uint64_t>;
  struct Ends {
    std::vector<program::ProbeId> entries, returns;
  };
  std::map<Place, Ends> places;
  for (const check::Unit& unit : checked.units) {
    if (unit.action == nullptr || unit.context.part_of_call == CallBoundary::kNone) continue;
    const bool is_system_call = unit.context.dispatch == spec::ProbeContext::Dispatch::kNumber;
    for (const program::ProbeId id : unit.probes) {
      const program::Probe& probe = program.probes[id];
      const bool is_entry = unit.context.part_of_call == CallBoundary::kEntry;
      const uint64_t offset = is_entry ? probe.offset : 0,
                     back = is_entry ? 0 : probe.offset;  // a return may be inside
      Ends& ends = places[is_system_call ? Place{true, "", "", probe.number, 0}
                                         : Place{false, probe.target, probe.function, probe.address - back, offset}];
      (is_entry ? ends.entries : ends.returns).push_back(id);
    }
  }
  call_numbers.assign(program.probes.size(), 0);
  uint32_t number = 0;
  for (const auto& [place, ends] : places) {
    if (ends.entries.empty() || ends.returns.empty()) continue;
    ++number;
    for (const auto* ids : {&ends.entries, &ends.returns})
      for (const program::ProbeId id : *ids) call_numbers[id.index] = number;
    call_numbers[ends.entries.front().index] |= kCallLeader;
    call_numbers[ends.returns.back().index] |= kCallLeader;
  }
  return number > 0;
}

uint32_t ModuleContext::waiting_counter(program::ProgramId of) {
  program::BpfProgram& waiting = program.programs[of];
  if (!std::exchange(waiting.is_sleepable, true)) waiting.waiting_offset = add_global(8, kCacheLineBytes);
  return waiting.waiting_offset;
}

void ModuleContext::add_gates(uint32_t programs) {
  constexpr uint32_t kMaxCalls = 64 << 10;  // in progress at a time
  program.gates.offset_bytes = add_global(programs * 8, kCacheLineBytes);
  program.gates.slice_offset = add_global(8, 8);
  program.gates.skipped = add_probe_counters();
  if (!pair_calls()) return;
  program.gates.calls =
      program.maps.add({.name = "calls", .kind = MapKind::kHash, .key_size = 16, .max_entries = kMaxCalls});
}

void ModuleContext::add_caller_table(ProgramId id) {
  Gates& gates = program.gates;
  const Hook hook = program.programs[id].hook;
  if (!gates.has_gate(id) || (!shares_table(hook) && hook != Hook::kRawTracepoint)) return;
  gates.caller_tables.resize(id.index + 1);
  uint32_t same = 0;
  for (uint32_t other = 0; other < id.index; ++other) {
    if (program.programs[ProgramId{other}].hook != hook || gates.caller_tables[other] == 0) continue;
    if (shares_table(hook)) {
      gates.caller_tables[id.index] = gates.caller_tables[other];
      return;
    }
    ++same;
  }
  if (same >= kMostRawTracepoints) return;
  gates.caller_tables[id.index] = add_global(kCallerTableBytes * cpu_slots(), kCacheLineBytes);
}

void ModuleContext::add_own_times(uint32_t programs) {
  program.own_times.switch_offset = add_global(8, kCacheLineBytes);
  program.own_times.offset_bytes = add_global(programs * 2 * 8, kCacheLineBytes);
}

void ModuleContext::add_script_maps() {
  const bool has_irq_off = std::ranges::any_of(checked.units, may_fire_with_interrupts_off);
  for (const check::CheckedMap& map : checked.maps) {
    program::ScriptMap out{
        .name = map.name, .key = map.key, .value = map.value, .note = map.storage_note, .span = map.span};
    if (types[map.key].kind == types::Kind::kVoid) {
      add_storage_in_globals(out);
    } else if (map.is_of_thread) {
      add_task_storage(map, out);
    } else {
      add_hash(map, has_irq_off, out);
    }
    program.script_maps.add(std::move(out));
  }
}

// The word "assigned", and the value.
void ModuleContext::add_storage_in_globals(program::ScriptMap& out) {
  const uint32_t size = 8 + value_bytes(out.value);
  if (types::is_aggregation(types[out.value])) {
    out.storage = Storage::kGlobalPerCpu;
    out.stride_bytes = std::max(std::bit_ceil(size), kCacheLineBytes);
    out.offset_bytes = add_global(out.stride_bytes * cpu_slots(), kCacheLineBytes);
  } else {
    out.storage = Storage::kGlobal;
    out.offset_bytes = add_global(size, 8);
  }
}

void ModuleContext::add_task_storage(const check::CheckedMap& map, program::ScriptMap& out) {
  const uint32_t size = 8 + value_bytes(map.value);
  out.storage = Storage::kThread;
  out.offset_bytes = add_global(size, 8);
  out.map = program.maps.add({.name = map.name, .kind = MapKind::kTaskStorage, .value_size = size, .max_entries = 0});
}

namespace {

// Interrupts that are off, and many keys: see may_fire_with_interrupts_off() and kManyKeys.
bool wants_preallocation(uint64_t entries, uint64_t total_bytes, bool has_irq_off) {
  if (has_irq_off && total_bytes <= kPreallocatedBytes) return true;
  return entries > kManyKeys && total_bytes <= kManyKeysBytes;
}

}  // namespace

// The kernel takes 14 us and more to allocate memory of all CPUs for each of a million keys, and may have none at hand;
// a plain hash whose elements have a slot for each CPU takes 0.5 us. Slots are as far apart as cache lines, so there
// must not be too many.
void ModuleContext::add_hash(const check::CheckedMap& map, bool has_irq_off, program::ScriptMap& out) {
  const uint64_t entries = map.max_entries ? map.max_entries : checked.config.limits.max_map_keys;
  const bool is_recent = types[map.value].kind == types::Kind::kRecent;
  MapKind kind = hash_kind(map, types::is_aggregation(types[map.value]) && !is_recent);
  out.storage = is_per_cpu(kind) ? Storage::kPercpuHash : Storage::kHash;
  uint32_t size = value_bytes(map.value);
  const auto stride = round_up(size, kCacheLineBytes);
  const uint64_t slot_bytes = uint64_t{stride} * cpu_slots();
  if (kind == MapKind::kPercpuHash && slot_bytes <= kSlotBytes && slot_bytes * entries <= kSlotMapBytes) {
    kind = MapKind::kHash;
    out.storage = Storage::kSlotHash;
    out.stride_bytes = stride;
    size = static_cast<uint32_t>(slot_bytes);
  }
  const bool is_lru = kind == MapKind::kLruHash || kind == MapKind::kLruPercpuHash;
  if (is_lru) out.keys_offset = add_global(8, kCacheLineBytes);
  const uint32_t key_size = std::max(types[map.key].size_bytes, 1u);
  const uint64_t values_bytes = uint64_t{size} * (is_per_cpu(kind) ? program.cpu_count : 1);
  const uint64_t total_bytes = entries * (round_up(key_size, 8) + values_bytes);
  const bool is_preallocated = is_lru || wants_preallocation(entries, total_bytes, has_irq_off);
  out.map = program.maps.add({.name = map.name,
                              .kind = kind,
                              .key_size = key_size,
                              .value_size = size,
                              .max_entries = static_cast<uint32_t>(std::min<uint64_t>(entries, UINT32_MAX)),
                              .is_preallocated = is_preallocated});
}

uint32_t ModuleContext::value_bytes(TypeId type) const { return round_up(std::max(types[type].size_bytes, 8u), 8); }

void ModuleContext::find_targets() {
  targets.resize(checked.ast.exprs.size());
  for (const syntax::Stmt& statement : checked.ast.stmts)
    if (const auto* assign = std::get_if<syntax::Assign>(&statement.node)) targets[assign->target.index] = true;
  for (const syntax::Expr& expression : checked.ast.exprs)
    if (const auto* unary = std::get_if<syntax::Unary>(&expression.node);
        unary && unary->op >= syntax::UnaryOp::kPreIncrement)
      targets[unary->operand.index] = true;
}

std::set<program::ScriptMapId> ModuleContext::maps_assigned_by(const check::Unit& unit) {
  if (targets.empty()) find_targets();
  std::set<program::ScriptMapId> out;
  for (const check::ExprId id : unit.exprs.ids()) {
    const auto map = unit.fact(id).map;
    if (map.valid() && id.index < targets.size() && targets[id.index]) out.insert(map);
  }
  return out;
}

bool ModuleContext::is_interrupted(program::ScriptMapId map) {
  const auto [known, is_new] = interrupted.try_emplace(map, false);
  if (!is_new) return known->second;
  uint32_t programs = 0;
  bool may_interrupt = false;
  for (const check::Unit& unit : checked.units) {
    if (!maps_assigned_by(unit).contains(map)) continue;
    ++programs;
    // An interrupt, or, where programs of tracepoints are preemptible (seen on Linux 7.2), another thread.
    may_interrupt = may_interrupt || unit.context.after_exit != spec::AfterExit::kAlways;
  }
  return known->second = programs > 1 && may_interrupt;
}

bool ModuleContext::keeps_keys(program::ScriptMapId map) {
  const auto [known, is_new] = kept_keys.try_emplace(map, false);
  if (!is_new) return known->second;
  const auto removes_keys = [&](const check::Unit& unit, check::ExprId id) {
    const spec::Builtin* builtin = unit.fact(id).builtin;
    if (!builtin || !builtin->removes_keys) return false;
    const auto* call = checked.ast.get<syntax::Call>(id);
    return call && unit.fact(call->arguments[0]).map == map;
  };
  const bool are_removed = std::ranges::any_of(checked.units, [&](const check::Unit& unit) {
    return std::ranges::any_of(unit.exprs.ids(), [&](check::ExprId id) { return removes_keys(unit, id); });
  });
  return known->second = !are_removed && program.maps[script_map(map).map].kind == MapKind::kHash;
}

bool ModuleContext::takes_stacks(const check::Unit& unit) const {
  const auto is_stack = [&](const check::Unit& each) {
    return std::ranges::any_of(each.exprs.ids(), [&](check::ExprId id) {
      const TypeId type = each.fact(id).type;
      if (!type.valid()) return false;
      return types[type].kind == types::Kind::kKernelStack || types[type].kind == types::Kind::kUserStack;
    });
  };
  const auto is_stack_function = [&](const check::Unit& each) { return each.function != nullptr && is_stack(each); };
  return is_stack(unit) || std::ranges::any_of(checked.units, is_stack_function);
}

void ModuleContext::choose_ring_size() {
  bool is_large = false;
  for (const check::Unit& unit : checked.units)
    is_large = is_large || (may_emit(unit) && (!unit.action || !unit.context.fires_rarely));
  program.ring_bytes = is_large ? kLargeRingBytes : kSmallRingBytes;
  const uint64_t pages = checked.config.limits.perf_rb_pages;
  if (pages) {
    const uint64_t bytes = std::clamp(pages * program.page_size_bytes, kLeastRingBytes, kMostRingBytes);
    program.ring_bytes = static_cast<uint32_t>(std::bit_ceil(bytes));
  }
  if (program.ring_bytes > kMostOldRingBytes && !kernel.has(kernel::Feature::kLargeArrayValues))
    program.ring_bytes = kMostOldRingBytes;
  while (program.ring_bytes > kSmallRingBytes && uint64_t{program.ring_bytes} * program.cpu_count > kAllRingsBytes)
    program.ring_bytes /= 2;
}

void ModuleContext::finish() {
  program.license = checked.config.license;
  program.verifier_log_bytes = static_cast<uint32_t>(checked.config.limits.log_size);
  if (program.ring.valid()) {
    program.ring_slack_bytes = round_up(std::max(longest_record_bytes, 1u), program.page_size_bytes);
    program::BpfMap& ring = program.maps[program.ring];
    ring.value_size =
        program::ring_data_offset(program.page_size_bytes) + program.ring_bytes + program.ring_slack_bytes;
    const uint32_t first_bytes = program::ring_data_offset(program.page_size_bytes) + program::kRingFirstDataBytes;
    if (ring.value_size > first_bytes && longest_record_bytes <= program::kMaxRecordBytes)
      ring.first_bytes = first_bytes;
  } else {
    program.ring_bytes = 0;
  }
  program.maps[program.globals].value_size = round_up(globals_bytes, 8);
  constants.resize(std::max<uint64_t>(round_up(constants.size(), 8), 8));
  program.maps[program.rodata].value_size = static_cast<uint32_t>(constants.size());
  program.maps[program.rodata].initial = constants;
  if (scratch.valid()) program.maps[scratch].value_size = std::max(scratch_bytes, 8u);
  preallocate_if_required();
}

// Before Linux 6.1 the kernel refuses other hashes in programs of perf events, and warns in its log of those in
// programs of probes (check_map_prog_compatibility).
void ModuleContext::preallocate_if_required() {
  for (const MapId map : program.maps.ids()) {
    program::BpfMap& each = program.maps[map];
    const bool is_hash = each.kind == MapKind::kHash || each.kind == MapKind::kPercpuHash;
    if (is_hash && !each.is_preallocated) each.is_preallocated = !kernel.has(kernel::Feature::kHashAllocation);
  }
}

}  // namespace espy::lower
