// The context and the attaching that uprobe, uretprobe and usdt share.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "load/machine.h"
#include "probes/probe_support.h"
#include "symbols/debug_file.h"
#include "symbols/symbols.h"

namespace espy::probes {

namespace {

using program::ProbeId;

// The probes of one program in one file, which is open. The kernel gets the path of the descriptor: it resolves a path
// in espy's root, which may differ from the process's root. By then, a name may also lead to another file.
struct InFile {
  std::string path;
  int descriptor = -1;
  uint64_t start = 0;  // of the target in an archive
  std::vector<ProbeId> probes;
};

constexpr const char* kMulti = "multi";      // the method of attaching all probes in a file by one link
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

ProbeId probe_of(uint64_t cookie) { return ProbeId{static_cast<uint32_t>(cookie)}; }

// Whether the kernel fails so because of one offset, or of its reference counter; other errors are of all.
bool may_be_of_one(int code) {
  switch (code) {
    case kNotSupported:  // an instruction that cannot be single-stepped
    case ENOEXEC:        // no instruction
    case EINVAL:         // outside of the file, or another tool's probe is there with another counter
    case EIO:            // the file cannot be read there
    case EFAULT:
    case EBUSY: return true;  // the counter is in no memory
    default: return false;
  }
}

bool is_for_instruction(int code) { return code == kNotSupported || code == ENOEXEC; }

std::string why_refused_there(const Error& error) {
  return is_for_instruction(error.code) ? "the kernel refuses the instruction there"
                                        : fmt::format("the kernel refuses the place: {}", std::strerror(error.code));
}

// Attaches to as many offsets as possible, and adds the others to `refused`. Because of one that the kernel refuses, it
// refuses all offsets and does not say which, so this retries with each half; not without end if it refuses one by one.
void attach_with_bisection(load::Machine& machine, program::ProgramId program, const load::UprobeMulti& probes,
                           std::vector<RefusedProbe>& refused, size_t& refused_in_a_row) {
  constexpr size_t kMostInARow = 256;
  const Status status = machine.attach_uprobe_multi(program, probes);
  if (status) refused_in_a_row = 0;
  if (status) return;
  const size_t count = probes.offsets.size();
  if (!may_be_of_one(status.error().code) || refused_in_a_row >= kMostInARow) {
    for (const uint64_t cookie : probes.cookies) refused.push_back({probe_of(cookie), status.error()});
  } else if (count == 1) {
    ++refused_in_a_row;
    refused.push_back({probe_of(probes.cookies[0]), {why_refused_there(status.error()), status.error().code}});
  } else {
    attach_with_bisection(machine, program, slice(probes, 0, count / 2), refused, refused_in_a_row);
    attach_with_bisection(machine, program, slice(probes, count / 2, count), refused, refused_in_a_row);
  }
}

// Returns why there cannot be a probe at an offset of the file; "" if nothing is known that forbids it.
std::string_view why_impossible(load::Machine& machine, const kernel::Arch& arch, int file, uint64_t offset) {
  const uint64_t before_bytes = std::min<uint64_t>(arch.step_context_bytes, offset);
  std::vector<std::byte> bytes(before_bytes + arch.max_instruction_bytes);
  const auto got = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset - before_bytes));
  if (got < 0) return "";
  if (got <= static_cast<ssize_t>(before_bytes)) return "it is beyond the end of the file";
  const auto read = std::span<const std::byte>(bytes).first(static_cast<size_t>(got));
  const auto code = read.subspan(before_bytes);
  if (arch.can_be_stepped(read.first(before_bytes), code)) return "";
  const bool is_prefixed_nop =
      arch.prefixed_nop && arch.prefixed_nop->matches({reinterpret_cast<const uint8_t*>(code.data()), code.size()});
  if (is_prefixed_nop && machine.try_feature(kernel::Feature::kUprobePrefixedNop)) return "";
  return "the kernel cannot step over the instruction there";
}

// Returns the probes at instructions that can be single-stepped, and adds the others to `refused`. Some of these the
// kernel does not detect, and the traced program would crash; for those that it detects, finding them by bisection
// would cost a grace period each.
std::vector<ProbeId> possible_probes(const spec::AttachRequest& request, const InFile& in_file,
                                     std::vector<RefusedProbe>& refused) {
  std::vector<ProbeId> out;
  for (const ProbeId id : in_file.probes) {
    const program::Probe& probe = request.program.probes[id];
    const uint64_t offset = in_file.start + probe.address;
    std::string why = probe.why_not;
    if (why.empty()) why = why_impossible(request.machine, *request.program.arch, in_file.descriptor, offset);
    if (why.empty())
      out.push_back(id);
    else
      refused.push_back({id, {std::move(why), kNotSupported}});
  }
  return out;
}

// The process that the kernel shall put breakpoints in, nullopt for all: it looks for the memory of the first thread,
// which has none after its end (uprobe_multi_link_filter() in kernel/trace/bpf_trace.c). The programs ask, too.
std::optional<uint32_t> process_for_kernel(const spec::Config& config) {
  const auto pid = config.tracee.only_process_for_kernel();
  return pid && symbols::task_with_memory(*pid) != *pid ? std::nullopt : pid;
}

void attach_each(const spec::AttachRequest& request, const InFile& in_file, bool is_return,
                 std::vector<RefusedProbe>& refused) {
  for (const ProbeId id : possible_probes(request, in_file, refused)) {
    const program::Probe& probe = request.program.probes[id];
    const uint64_t counter = probe.reference_counter;
    const Status status = request.machine.attach_uprobe(request.program_id, in_file.path, in_file.start + probe.address,
                                                        counter == 0 ? 0 : in_file.start + counter, is_return,
                                                        process_for_kernel(request.config), id.index);
    if (status) continue;
    const Error& error = status.error();
    refused.push_back({id, is_for_instruction(error.code) ? Error{why_refused_there(error), error.code} : error});
    if (error.code == ECANCELED) return;
  }
}

void attach_at_once(const spec::AttachRequest& request, const InFile& in_file, bool is_return,
                    std::vector<RefusedProbe>& refused) {
  load::UprobeMulti multi;
  multi.path = in_file.path;
  multi.is_return = is_return;
  multi.pid = process_for_kernel(request.config).value_or(0);
  bool has_counters = false;
  for (const ProbeId id : possible_probes(request, in_file, refused)) {
    const program::Probe& probe = request.program.probes[id];
    const bool is_counted = probe.reference_counter != 0;
    multi.offsets.push_back(in_file.start + probe.address);
    multi.reference_counters.push_back(is_counted ? in_file.start + probe.reference_counter : 0);
    multi.cookies.push_back(id.index);
    has_counters |= is_counted;
  }
  if (!has_counters) multi.reference_counters.clear();
  size_t refused_in_a_row = 0;
  if (!multi.offsets.empty())
    attach_with_bisection(request.machine, request.program_id, multi, refused, refused_in_a_row);
}

// Groups the probes by file, in their order.
std::vector<std::vector<ProbeId>> by_file(const spec::AttachRequest& request, std::span<const ProbeId> probes) {
  std::vector<std::vector<ProbeId>> out;
  const auto file_of = [&](ProbeId id) {
    const program::Probe& probe = request.program.probes[id];
    return std::tie(probe.target, probe.file, probe.file_start);
  };
  for (const ProbeId id : probes) {
    if (out.empty() || file_of(out.back().front()) != file_of(id)) out.emplace_back();
    out.back().push_back(id);
  }
  return out;
}

// Fails unless the open file is still what it was when its symbols were read.
Status check_unchanged(const program::Probe& probe, const OwnedFd& file) {
  const FileState now = TRY(state_of(file));
  if (probe.file.is_known() && now != probe.file) return symbols::changed_while_prepared(probe.target, probe.file, now);
  return {};
}

// Attaches the probes that are in one file.
Status attach_in_file(const spec::AttachRequest& request, std::vector<ProbeId> probes, bool is_return,
                      std::vector<RefusedProbe>& refused) {
  const program::Probe& first = request.program.probes[probes.front()];
  const std::string path = symbols::path_on_disk(first.target);
  const UntrustedFile file = TRY(open_itself(path));
  TRY_STATUS(check_unchanged(first, file.fd));
  const InFile in_file{descriptor_path(file.fd), file.fd.get(), first.file_start, std::move(probes)};
  const bool is_multi = request.program.programs[request.program_id].expected_attach_type != 0;
  const size_t already_refused = refused.size();
  (is_multi ? attach_at_once : attach_each)(request, in_file, is_return, refused);
  for (RefusedProbe& each : std::span(refused).subspan(already_refused))
    if (const size_t at = each.error.message.find(in_file.path); at != std::string::npos)
      each.error.message.replace(at, in_file.path.size(), path);
  return check_unchanged(first, file.fd);  // it may have been written to meanwhile
}

}  // namespace

spec::ProbeContext uprobe_context(spec::ContextRequest& request, bool is_return) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kKprobe;
  out.is_preemptible = true;
  out.is_last_attached_first = true;  // consumer_add() in kernel/events/uprobes.c
  out.may_sleep = request.kernel.has(kernel::Feature::kUprobeSleep);
  out.pointers = types::AddressSpace::kUser;
  add_registers(out, request.kernel.arch(), request.types, is_return);
  if (!is_return) add_stack_arguments(out, request.kernel.arch(), request.types);
  out.context_struct = "pt_regs";
  if (request.share.method.starts_with(kMulti)) {
    out.expected_attach_type = kAttachUprobeMulti;
    if (is_return) out.deepest_nesting = kMaxUretprobeDepth;
    if (request.kernel.has(kernel::Feature::kUprobeSession)) out.session_attach_type = kAttachUprobeSession;
    if (request.probes.size() > 1) out.dispatch = spec::ProbeContext::Dispatch::kCookie;
  }
  return out;
}

spec::Share share_of_uprobe(kernel::Kernel& kernel, const program::Probe& probe, bool is_for_any_file) {
  if (!kernel.has(kernel::Feature::kUprobeMulti))
    return {.method = "perf", .place = probe.target, .file = probe.file, .offset = probe.address};
  if (is_for_any_file) return {.method = kMulti};
  return {.method = kMulti, .place = probe.target, .file = probe.file};
}

Status attach_uprobes(const spec::AttachRequest& request, std::span<const program::ProbeId> probes, bool is_return) {
  std::vector<RefusedProbe> refused;
  for (const std::vector<ProbeId>& in_file : by_file(request, probes)) {
    const Status status = attach_in_file(request, in_file, is_return, refused);
    if (!status && status.error().code == ESTALE) return status;
    if (!status)
      for (const ProbeId id : in_file) refused.push_back({id, status.error()});
  }
  return leave_out(request, with_returns(request, probes, std::move(refused)));
}

}  // namespace espy::probes
