// What uprobe, uretprobe and usdt have in common: what their programs see, and how they are attached.
#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"
#include "kernel/arch/arch.h"
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

// Attaches to all offsets that can be probed, and puts the cookies of others into `refused`. The kernel refuses
// instructions that it cannot single-step, and with one all of them, without saying which: so halves are tried, and
// theirs. Fails if nothing is left.
Status attach_possible(load::Machine& machine, program::ProgramId program, const load::UprobeMulti& probes,
                       std::vector<uint64_t>& refused) {
  if (probes.offsets.empty()) return fail_errno("nothing of it can be probed", kNotSupported);
  const Status status = machine.attach_uprobe_multi(program, probes);
  const size_t count = probes.offsets.size();
  if (status || status.error().code != kNotSupported) return status;
  if (count == 1) refused.push_back(probes.cookies[0]);
  if (count == 1) return status;
  const Status first = attach_possible(machine, program, part_of(probes, 0, count / 2), refused);
  const Status second = attach_possible(machine, program, part_of(probes, count / 2, count), refused);
  return first ? first : second;
}

// Finding by halves costs a grace period for each half that is refused. So a wildcard's functions whose first
// instruction tells are set aside before.
void set_aside(load::UprobeMulti& probes, std::vector<uint64_t>& refused) {
  const OwnedFd file(::open(probes.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || probes.offsets.size() < 2) return;
  load::UprobeMulti kept = part_of(probes, 0, 0);
  for (size_t i = 0; i < probes.offsets.size(); ++i) {
    std::array<std::byte, kernel::kInstructionBytes> code = {};
    const auto got = ::pread(file.get(), code.data(), code.size(), static_cast<off_t>(probes.offsets[i]));
    if (got > 0 && !kernel::can_be_stepped(kernel::host_arch(), {code.data(), static_cast<size_t>(got)})) {
      refused.push_back(probes.cookies[i]);
      continue;
    }
    kept.offsets.push_back(probes.offsets[i]);
    kept.cookies.push_back(probes.cookies[i]);
    if (!probes.reference_counters.empty()) kept.reference_counters.push_back(probes.reference_counters[i]);
  }
  probes = std::move(kept);
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
  std::vector<uint64_t> refused;
  set_aside(multi, refused);
  TRY_STATUS(attach_possible(request.machine, request.program_id, multi, refused));
  for (const uint64_t cookie : refused) {
    const program::ProbeId id{static_cast<uint32_t>(cookie)};
    request.machine.leave_out({program.probes[id].name, "the kernel cannot step over its first instruction"});
  }
  return {};
}

}  // namespace espy::probes
