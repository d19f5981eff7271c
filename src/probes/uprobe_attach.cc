// The context and the attaching that uprobe, uretprobe and usdt share.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <vector>

#include "base/fd.h"
#include "kernel/arch/arch.h"
#include "load/machine.h"
#include "probes/common.h"
#include "symbols/archive.h"

namespace espy::probes {

namespace {

using program::ProbeId;

// The probes of one program in one file.
struct InFile {
  symbols::DiskLocation place;
  std::vector<ProbeId> probes;
};

constexpr uint32_t kAttachUprobeMulti = 48;  // BPF_TRACE_UPROBE_MULTI
constexpr uint32_t kMaxUretprobeDepth = 64;  // MAX_URETPROBE_DEPTH
constexpr int kNotSupported = 524;           // ENOTSUPP, which the kernel returns but does not publish

load::UprobeMulti slice(const load::UprobeMulti& whole, size_t begin, size_t end) {
  load::UprobeMulti part = whole;
  const auto cut = [&](std::vector<uint64_t>& list) {
    if (!list.empty()) list = {list.begin() + static_cast<long>(begin), list.begin() + static_cast<long>(end)};
  };
  cut(part.offsets);
  cut(part.reference_counters);
  cut(part.cookies);
  return part;
}

// Attaches to as many offsets as possible, and adds the cookies of the others to `refused`. If the kernel cannot
// single-step one of the instructions, it refuses all offsets and does not say which, so this retries with each half.
// Returns an error if no offset is left.
Status attach_with_bisection(load::Machine& machine, program::ProgramId program, const load::UprobeMulti& probes,
                             std::vector<uint64_t>& refused) {
  const Status status = machine.attach_uprobe_multi(program, probes);
  const size_t count = probes.offsets.size();
  if (status || status.error().code != kNotSupported) return status;
  if (count == 1) refused.push_back(probes.cookies[0]);
  if (count == 1) return status;
  const Status first = attach_with_bisection(machine, program, slice(probes, 0, count / 2), refused);
  const Status second = attach_with_bisection(machine, program, slice(probes, count / 2, count), refused);
  return first ? first : second;
}

bool can_be_stepped(const kernel::Arch& arch, int file, uint64_t offset) {
  std::vector<std::byte> code(arch.max_instruction_bytes);
  const auto got = ::pread(file, code.data(), code.size(), static_cast<off_t>(offset));
  return got <= 0 || arch.can_be_stepped({code.data(), static_cast<size_t>(got)});
}

// Returns the probes at instructions that can be single-stepped. Some of the others the kernel does not detect, and the
// traced program would crash; for those that it detects, finding them by bisection would cost a grace period each.
// Probes of a wildcard are skipped, others are an error.
Result<std::vector<ProbeId>> possible_probes(const spec::AttachRequest& request, const InFile& in_file) {
  constexpr std::string_view kReason = "the kernel cannot step over the instruction there";
  const OwnedFd file(::open(in_file.place.path.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<ProbeId> out;
  for (const ProbeId id : in_file.probes) {
    const program::Probe& probe = request.program.probes[id];
    if (!file.valid() || can_be_stepped(*request.program.arch, file.get(), in_file.place.offset + probe.address)) {
      out.push_back(id);
    } else if (probe.is_optional) {
      request.machine.skip({probe.name, std::string(kReason)});
    } else {
      return fail(fmt::format("cannot attach to {}: {}", probe.name, kReason), kNotSupported);
    }
  }
  if (out.empty()) return fail(fmt::format("cannot attach to {}: {}", in_file.place.path, kReason), kNotSupported);
  return out;
}

Status attach_each(const spec::AttachRequest& request, const InFile& in_file, bool is_return) {
  for (const ProbeId id : TRY(possible_probes(request, in_file))) {
    const program::Probe& probe = request.program.probes[id];
    const uint64_t counter = probe.reference_counter;
    TRY_STATUS(request.machine.attach_uprobe(request.program_id, in_file.place.path,
                                             in_file.place.offset + probe.address,
                                             counter == 0 ? 0 : in_file.place.offset + counter, is_return,
                                             request.config.only_process_for_kernel(), id.index));
  }
  return {};
}

Status attach_at_once(const spec::AttachRequest& request, const InFile& in_file, bool is_return) {
  const program::Program& program = request.program;
  load::UprobeMulti multi;
  multi.path = in_file.place.path;
  multi.is_return = is_return;
  multi.pid = request.config.only_process_for_kernel().value_or(0);
  bool has_counters = false;
  for (const ProbeId id : TRY(possible_probes(request, in_file))) {
    const program::Probe& probe = program.probes[id];
    const bool is_counted = probe.reference_counter != 0;
    multi.offsets.push_back(in_file.place.offset + probe.address);
    multi.reference_counters.push_back(is_counted ? in_file.place.offset + probe.reference_counter : 0);
    multi.cookies.push_back(id.index);
    has_counters |= is_counted;
  }
  if (!has_counters) multi.reference_counters.clear();
  std::vector<uint64_t> refused;
  TRY_STATUS(attach_with_bisection(request.machine, request.program_id, multi, refused));
  for (const uint64_t cookie : refused) {
    const ProbeId id{static_cast<uint32_t>(cookie)};
    request.machine.skip({program.probes[id].name, "the kernel refuses the instruction there"});
  }
  return {};
}

// Groups the probes by file, in their order.
std::vector<std::pair<std::string, std::vector<ProbeId>>> by_target(const spec::AttachRequest& request) {
  std::vector<std::pair<std::string, std::vector<ProbeId>>> out;
  for (const ProbeId id : request.probes) {
    const std::string& target = request.program.probes[id].target;
    if (out.empty() || out.back().first != target) out.emplace_back(target, std::vector<ProbeId>());
    out.back().second.push_back(id);
  }
  return out;
}

}  // namespace

spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kKprobe;
  out.is_preemptible = true;
  out.may_sleep = request.kernel.has(kernel::Feature::kUprobeSleep);
  out.pointers = types::AddressSpace::kUser;
  add_registers(out, request.kernel.arch(), request.types, is_return);
  if (!is_return) add_stack_arguments(out, request.kernel.arch(), request.types);
  out.context_type = context_pointer(request, "pt_regs");
  if (request.share.starts_with("multi/")) {
    out.expected_attach_type = kAttachUprobeMulti;
    if (is_return) out.deepest_nesting = kMaxUretprobeDepth;
    if (request.kernel.has(kernel::Feature::kUprobeSession)) out.session_attach_type = kAttachUprobeSession;
    if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  }
  return out;
}

Status attach_uprobes(const spec::AttachRequest& request, bool is_return) {
  const bool is_multi = request.program.programs[request.program_id].expected_attach_type != 0;
  const auto attach = is_multi ? attach_at_once : attach_each;
  Status problem;
  bool is_attached = false;
  for (auto& [target, probes] : by_target(request)) {
    const auto place = symbols::locate_on_disk(target);
    const Status status = place ? attach(request, {*place, probes}, is_return) : Status(tl::unexpected(place.error()));
    is_attached |= status.has_value();
    if (status) continue;
    problem = status;
    for (const ProbeId id : probes) {
      const program::Probe& probe = request.program.probes[id];
      if (!probe.is_optional) return status;
      request.machine.skip({probe.name, status.error().message});
    }
  }
  return is_attached ? Status() : problem;
}

}  // namespace espy::probes
