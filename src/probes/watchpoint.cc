// watchpoint: hardware breakpoints, by the debug registers of the CPU, through perf. A CPU has four.
//
// With a process (-p or -c), each of its threads is watched, including new ones; otherwise, every CPU, which is what a
// kernel address needs.
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include <cerrno>

#include "base/strings.h"
#include "kernel/cpu_list.h"
#include "load/machine.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kWatchpoint;

namespace {

constexpr std::string_view kExample = "watchpoint:0x10000000:8:w";

std::optional<uint32_t> parse_mode(std::string_view mode) {
  if (mode == "w") return HW_BREAKPOINT_W;
  if (mode == "rw" || mode == "wr") return HW_BREAKPOINT_RW;
  if (mode == "x") return HW_BREAKPOINT_X;
  return std::nullopt;
}

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (request.parts.size() != 3) return report_wrong_form(request, kWatchpoint.form, kExample);
  const auto address = parse_int(request.parts[0]);
  const auto length = parse_int(request.parts[1]);
  const auto mode = parse_mode(request.parts[2]);
  if (!address || !length || !mode) return report_wrong_form(request, kWatchpoint.form, kExample);
  const auto error = [&](const std::string& message) {
    request.diagnostics.error("bad-watchpoint", request.point.span, message);
    return std::vector<spec::BoundProbe>{};
  };
  if (*length != 1 && *length != 2 && *length != 4 && *length != 8) return error("the length must be 1, 2, 4 or 8");
  const bool is_of_code = *mode == HW_BREAKPOINT_X;
  if (*address % *length != 0 && !is_of_code) return error("the address must be a multiple of the length");
  spec::BoundProbe bound;
  bound.probe.provider = kWatchpoint.name;
  bound.probe.name = full_name(kWatchpoint.name, request.parts);
  bound.probe.address = static_cast<uint64_t>(*address);
  bound.probe.offset = is_of_code ? sizeof(long) : static_cast<uint64_t>(*length);  // what the kernel requires
  bound.probe.number = *mode;
  bound.probe.span = request.point.span;
  bound.share.place = bound.probe.name;
  return {bound};
}

Status explain(const Status& status) {
  if (!status && status.error().code == EINVAL)
    return fail("the kernel does not allow a watchpoint at this address", EINVAL);
  if (!status && status.error().code == ENOSPC) return fail("all debug registers of the CPU are in use", ENOSPC);
  return status;
}

Status attach_one(const spec::AttachRequest& request, program::ProbeId id) {
  const spec::Config& config = request.config;
  const program::Probe& probe = request.program.probes[id];
  load::PerfEvent event;
  event.type = PERF_TYPE_BREAKPOINT;
  event.breakpoint_type = static_cast<uint32_t>(probe.number);
  event.config1 = probe.address;
  event.config2 = probe.offset;
  event.period = 1;
  std::vector<spec::TracedProcess> only = config.tracee.processes;
  if (only.empty() && config.tracee.has_child) only.push_back({config.tracee.child_pid});
  if (!only.empty()) return explain(attach_to_traced_threads(request, id, event, only));
  for (const uint32_t cpu : kernel::online_cpus()) {
    event.cpu = static_cast<int32_t>(cpu);
    event.on_each_cpu = true;
    TRY_STATUS(explain(request.machine.attach_perf_event(request.program_id, event, id.index)));
  }
  return {};
}

Status attach(spec::AttachRequest& request) { return attach_each_probe(request, attach_one); }

// Lists the modes, since any address can be watched.
std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  constexpr std::string_view kModes[] = {"w", "rw", "x"};
  // A pattern with all parts may have an address and a length.
  const auto& parts = request.parts;
  if (parts.size() < 3 && !parts.empty() && !glob_match(parts[0], "ADDRESS")) return {};
  if (parts.size() == 2 && !glob_match(parts[1], "LENGTH")) return {};
  std::vector<spec::ListedProbe> out;
  for (const std::string_view mode : kModes) {
    if (parts.size() == 3 && !glob_match(parts[2], mode)) continue;
    spec::ListedProbe listed{fmt::format("watchpoint:ADDRESS:LENGTH:{}", mode), {}};
    if (request.verbose) listed.arguments.emplace_back("LENGTH 1, 2, 4 or 8");
    out.push_back(std::move(listed));
  }
  return out;
}

}  // namespace

extern const spec::Provider kWatchpoint = {
    .name = "watchpoint",
    .aliases = {"w"},
    .doc =
        "Fires when memory is written (`w`), read or written (`rw`), or executed (`x`), by the CPU's debug registers. "
        "LENGTH is 1, 2, 4 or 8. The address is one of the process given by -p or -c, or of the kernel.",
    .form = "watchpoint:ADDRESS:LENGTH:MODE",
    .bind = bind,
    .context = perf_event_context,
    .attach = attach,
    .list = list,
    .example = "watchpoint:0x10000000:8:rw { printf(\"%s\\n\", comm); }"};

}  // namespace espy::probes
