// The names of probes, and a program as text for --dump=program: one entity per line, in the order of the tables, so
// that diff can compare two programs.
#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "base/strings.h"
#include "program/program.h"

namespace espy::program {

// ---- Names of the probe that fired

uint32_t first_named(types::Kind kind, const std::string& name, const Table<ProbeId, Probe>& probes) {
  uint32_t i = 0;
  while (i < probes.size() && probe_name_text(kind, probes[ProbeId{i}]) != name) ++i;
  if (i < probes.size() || kind != types::Kind::kFunctionName) return i;
  for (const ProbeId id : probes.ids())
    if (!name.empty() && probes[id].name.ends_with(":" + name)) return first_named(kind, probes[id].function, probes);
  return i;
}

std::vector<uint32_t> first_of_each_name(types::Kind kind, const Table<ProbeId, Probe>& probes) {
  std::unordered_map<std::string_view, uint32_t> first;
  std::vector<uint32_t> out;
  for (const ProbeId id : probes.ids())
    out.push_back(first.emplace(probe_name_text(kind, probes[id]), id.index).first->second);
  return out;
}

namespace {

std::string_view name(MapKind kind) {
  switch (kind) {
    case MapKind::kArray: return "array";
    case MapKind::kPercpuArray: return "percpu_array";
    case MapKind::kHash: return "hash";
    case MapKind::kPercpuHash: return "percpu_hash";
    case MapKind::kLruHash: return "lru_hash";
    case MapKind::kLruPercpuHash: return "lru_percpu_hash";
    case MapKind::kStackTrace: return "stack_trace";
    case MapKind::kTaskStorage: return "task_storage";
    case MapKind::kCgroupArray: return "cgroup_array";
    case MapKind::kArrayOfMaps: return "array_of_maps";
  }
  return "?";
}

std::string_view name(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kSyscall: return "syscall";
    case ProgramKind::kRawTracepoint: return "raw_tracepoint";
    case ProgramKind::kTracingRawTracepoint: return "tp_btf";
    case ProgramKind::kTracepoint: return "tracepoint";
    case ProgramKind::kPerfEvent: return "perf_event";
    case ProgramKind::kKprobe: return "kprobe";
    case ProgramKind::kFentry: return "fentry";
    case ProgramKind::kFexit: return "fexit";
    case ProgramKind::kIter: return "iter";
  }
  return "?";
}

std::string_view name(Storage storage) {
  switch (storage) {
    case Storage::kGlobal: return "global";
    case Storage::kGlobalPerCpu: return "global_per_cpu";
    case Storage::kHash: return "hash";
    case Storage::kPercpuHash: return "percpu_hash";
    case Storage::kSlotHash: return "slot_hash";
    case Storage::kThread: return "thread";
  }
  return "?";
}

std::string quote(std::string_view text) { return '"' + escape(text) + '"'; }

std::string print_map(MapId id, const BpfMap& map) {
  std::string line = fmt::format("map m{} {} kind={} key={} value={} entries={}", id.index, quote(map.name),
                                 name(map.kind), map.key_size, map.value_size, map.max_entries);
  if (map.is_mmapable) line += " mmapable";
  if (map.is_read_only) line += " read_only";
  if (map.is_preallocated) line += " preallocated";
  if (map.like.valid()) line += fmt::format(" like=m{}", map.like.index);
  if (!map.initial.empty()) line += fmt::format(" initial={}", map.initial.size());
  return line + "\n";
}

std::string print_script_map(const ScriptMap& map, const types::Types& types) {
  std::string line = fmt::format("script_map {} key={} value={} storage={}", map.name, to_string(types, map.key),
                                 to_string(types, map.value), name(map.storage));
  line += map.map.valid() ? fmt::format(" map=m{}", map.map.index) : fmt::format(" offset={}", map.offset_bytes);
  if (map.stride_bytes != 0) line += fmt::format(" stride={}", map.stride_bytes);
  if (!map.note.empty()) line += " note=" + quote(map.note);
  return line + "\n";
}

std::string print_event(EventId id, const EventSchema& event, const types::Types& types) {
  std::string out = fmt::format("event e{} {} size={}", id.index, event.builtin, event.size_bytes);
  for (const std::string& literal : event.literals) out += " " + quote(literal);
  for (const int64_t number : event.numbers) out += fmt::format(" {}", number);
  if (event.map.valid()) out += fmt::format(" map={}", event.map.index);
  out += "\n";
  for (const EventField& field : event.fields)
    out += fmt::format("  field {}{} {}\n", field.is_in_tail ? "tail@" : "@", field.offset_bytes,
                       to_string(types, field.type));
  return out;
}

std::string print_program(ProgramId id, const BpfProgram& program) {
  std::string line = fmt::format("program p{} {} kind={}", id.index, program.name, name(program.kind));
  if (program.is_sleepable) line += " sleepable";
  if (program.expected_attach_type) line += fmt::format(" attach_type={}", program.expected_attach_type);
  if (program.attach_btf_id) line += fmt::format(" btf_id={}", program.attach_btf_id);
  return line + fmt::format(" instructions={}\n", program.code.size());
}

std::string print_probe(ProbeId id, const Probe& probe) {
  std::string line = fmt::format("probe {} {}", id.index, probe.name);
  if (probe.program.valid()) line += fmt::format(" program=p{}", probe.program.index);
  if (probe.address) line += fmt::format(" address={:#x}", probe.address);
  if (probe.number) line += fmt::format(" number={}", probe.number);
  return line + "\n";
}

}  // namespace

std::string print(const Program& program, const types::Types& types) {
  std::string out = fmt::format("cpus {}\n", program.cpu_count);
  if (program.ring.valid())
    out +=
        fmt::format("ring m{} bytes={} slack={}\n", program.ring.index, program.ring_bytes, program.ring_slack_bytes);
  out += fmt::format("exit_flag @{}\nsequence @{}\n", program.exit_flag_offset, program.sequence_offset);
  for (const LossCounter& counter : program.loss_counters)
    out += fmt::format("loss {} @{}\n", quote(counter.what), counter.offset_bytes);
  if (program.hits.stride_bytes > 0)
    out += fmt::format("hits @{} stride {}\n", program.hits.offset_bytes, program.hits.stride_bytes);
  for (const MapId id : program.maps.ids()) out += print_map(id, program.maps[id]);
  for (const ScriptMap& map : program.script_maps) out += print_script_map(map, types);
  for (const EventId id : program.events.ids()) out += print_event(id, program.events[id], types);
  for (const ProgramId id : program.programs.ids()) out += print_program(id, program.programs[id]);
  for (const auto& [tracepoint, id] : program.following.programs)
    out += fmt::format("follows {} program=p{}\n", tracepoint, id.index);
  for (const ProbeId id : program.probes.ids()) out += print_probe(id, program.probes[id]);
  return out;
}

}  // namespace espy::program
