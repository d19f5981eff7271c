// What uprobe, uretprobe and usdt have in common: what their programs see, and how they are attached.
#include "load/machine.h"
#include "probes/common.h"

namespace espy::probes {

namespace {

constexpr uint32_t kAttachUprobeMulti = 48;  // BPF_TRACE_UPROBE_MULTI
constexpr int kNotSupported = 524;           // ENOTSUPP, which the kernel returns but does not publish

load::UprobeMulti part_of(const load::UprobeMulti& whole, size_t begin, size_t end) {
  load::UprobeMulti part = whole;
  const auto cut = [&](std::vector<uint64_t>& list) {
    if (!list.empty()) list = {list.begin() + static_cast<long>(begin), list.begin() + static_cast<long>(end)};
  };
  cut(part.offsets);
  cut(part.reference_counters);
  cut(part.cookies);
  return part;
}

// Attaches to all offsets that can be probed. The kernel refuses instructions that it cannot single-step (a `lock`
// prefix), and with one all of them, without saying which: so halves are tried, and theirs. Fails if nothing is left.
Status attach_possible(load::Machine& machine, program::ProgramId program, const load::UprobeMulti& probes) {
  const Status status = machine.attach_uprobe_multi(program, probes);
  const size_t count = probes.offsets.size();
  if (status || count == 1 || status.error().code != kNotSupported) return status;
  const Status first = attach_possible(machine, program, part_of(probes, 0, count / 2));
  const Status second = attach_possible(machine, program, part_of(probes, count / 2, count));
  if (first.has_value() != second.has_value()) machine.leave_out(first ? count - count / 2 : count / 2);
  return first ? first : second;
}

}  // namespace

spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kKprobe;
  out.is_preemptible = true;
  out.pointers = types::AddressSpace::kUser;
  add_registers(out, request.kernel.arch(), request.types, is_return);
  if (!is_return) add_stack_arguments(out, request.kernel.arch(), request.types);
  out.context_type = context_pointer(request, "pt_regs");
  if (request.share.starts_with("multi/")) {
    out.expected_attach_type = kAttachUprobeMulti;
    if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  }
  return out;
}

Status attach_uprobes(spec::AttachRequest& request, bool is_return) {
  const program::Program& program = request.program;
  const program::Probe& first = program.probes[request.probes.front()];
  if (program.programs[request.program_id].expected_attach_type != kAttachUprobeMulti) {
    for (const program::ProbeId id : request.probes) {
      const program::Probe& probe = program.probes[id];
      TRY_STATUS(request.machine.attach_uprobe(request.program_id, probe.target, probe.address, probe.reference_counter,
                                               is_return, request.config.pid, id.index));
    }
    return {};
  }
  load::UprobeMulti multi;
  multi.path = first.target;
  multi.is_return = is_return;
  multi.pid = request.config.pid.value_or(0);
  bool has_counters = false;
  for (const program::ProbeId id : request.probes) {
    multi.offsets.push_back(program.probes[id].address);
    multi.reference_counters.push_back(program.probes[id].reference_counter);
    multi.cookies.push_back(program::first_of_name(program.probes, id).index);
    has_counters |= program.probes[id].reference_counter != 0;
  }
  if (!has_counters) multi.reference_counters.clear();
  return attach_possible(request.machine, request.program_id, multi);
}

}  // namespace espy::probes
