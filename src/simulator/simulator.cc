#include "simulator/simulator.h"

#include <array>
#include <cerrno>

#include "base/fatal.h"

namespace espy::simulator {

using program::MapId;
using program::ProgramId;

Status Simulator::load(const program::Program& program, const types::Types& /*types*/,
                       const source::Sources& /*sources*/) {
  CHECK(maps_.empty());
  maps_.reserve(program.maps.size());  // programs hold the maps' addresses
  for (const program::BpfMap& shape : program.maps) maps_.emplace_back(shape, program.cpu_count, world_.memory);
  for (const program::BpfProgram& code : program.programs) {
    programs_.push_back(code);
    for (const program::MapReference& reference : code.map_references)
      programs_.back().code[reference.insn].imm = static_cast<int32_t>(reference.map.index);
  }
  if (btf_.kfunc) {
    kfuncs_.rdonly_cast = btf_.kfunc("bpf_rdonly_cast").value_or(0);
    kfuncs_.session_is_return = btf_.kfunc("bpf_session_is_return").value_or(0);
    kfuncs_.strstr = btf_.kfunc("bpf_strstr").value_or(0);
    kfuncs_.map_sum_elem_count = btf_.kfunc("bpf_map_sum_elem_count").value_or(0);
  }
  interpreters_.reserve(programs_.size());
  for (const program::BpfProgram& code : programs_) interpreters_.emplace_back(code, maps_, world_, kfuncs_);
  return {};
}

Status Simulator::execute(ProgramId program, std::span<std::byte> context) {
  CHECK(program.index < programs_.size());
  const auto result = interpreters_[program.index].run(context);
  world_.now_ns += world_.step_ns;
  if (!result && result.error().code == kUnrecorded) {
    const auto address = interpreters_[program.index].unrecorded_address();
    unrecorded_ = {program,
                   interpreters_[program.index].stopped_at(),
                   result.error().message,
                   result.error().hint,
                   address.has_value(),
                   address.value_or(0)};
  }
  if (!result) return fail((unrecorded_ ? "" : "simulator: ") + result.error().message);
  last_result_ = *result;
  return {};
}

// Programs that the session runs read nothing of their context; BPF_PROG_TEST_RUN gives them zeros.
Status Simulator::run(ProgramId program) {
  std::array<std::byte, 96> context = {};
  return execute(program, context);
}

// A run always takes as long.
Result<load::Machine::Measured> Simulator::measure(ProgramId program, uint64_t count) {
  constexpr uint64_t kRunNs = 1000;
  Measured out{.result = 0, .average_ns = kRunNs};
  for (uint64_t i = 0; i < count; ++i) {
    TRY_STATUS(run(program));
    out.result = static_cast<uint32_t>(last_result_);
  }
  return out;
}

Status Simulator::fire(const Attachment& attachment, std::span<std::byte> context) {
  world_.cookie = attachment.cookie;
  return execute(attachment.program, context);
}

Status Simulator::for_each(MapId map,
                           const std::function<void(std::span<const std::byte>, std::span<const std::byte>)>& visit) {
  SimMap& found = maps_[map.index];
  for (const std::vector<std::byte>& key : found.keys()) visit(key, found.all_cpus(key));
  return {};
}

std::optional<std::vector<std::byte>> Simulator::lookup(MapId map, std::span<const std::byte> key) {
  std::vector<std::byte> value = maps_[map.index].all_cpus(key);
  if (value.empty()) return std::nullopt;
  return value;
}

Status Simulator::update(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) {
  maps_[map.index].set_all_cpus(key, value);
  return {};
}

Result<bool> Simulator::replace(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) {
  if (maps_[map.index].lookup(key, 0) == nullptr) return false;
  maps_[map.index].set_all_cpus(key, value);
  return true;
}

Result<bool> Simulator::remove(MapId map, std::span<const std::byte> key) {
  const int64_t result = maps_[map.index].remove(key);
  maps_[map.index].bury_removed();
  return result == 0;
}

Status Simulator::attach_raw_tracepoint(ProgramId program, const std::string& name, uint64_t cookie) {
  attachments_.push_back({program, cookie, name, {}});
  return {};
}

Status Simulator::attach_tracing(ProgramId program, uint64_t cookie) {
  attachments_.push_back({program, cookie, {}, {}});
  return {};
}

// One event of several CPUs is attached once: the test says on which CPU it fires.
Status Simulator::attach_perf_event(ProgramId program, const load::PerfEvent& event, uint64_t cookie) {
  for (const Attachment& known : attachments_)
    if (known.program == program && known.cookie == cookie) return {};
  attachments_.push_back({program, cookie, {}, event});
  return {};
}

Status Simulator::attach_uprobe(ProgramId program, const std::string&, uint64_t, uint64_t, bool,
                                std::optional<uint32_t>, uint64_t cookie) {
  attachments_.push_back({program, cookie, {}, {}});
  return {};
}

Status Simulator::attach_uprobe_multi(ProgramId program, const load::UprobeMulti& probes) {
  for (size_t i = 0; i < probes.offsets.size(); ++i)
    attachments_.push_back({program, i < probes.cookies.size() ? probes.cookies[i] : 0, {}, {}});
  return {};
}

Status Simulator::attach_kprobe(ProgramId program, const load::Kprobe&, uint64_t cookie) {
  attachments_.push_back({program, cookie, {}, {}});
  return {};
}

Status Simulator::attach_kprobe_multi(ProgramId program, const load::KprobeMulti& probes) {
  for (const uint64_t cookie : probes.cookies) attachments_.push_back({program, cookie, {}, {}});
  return {};
}

}  // namespace espy::simulator
