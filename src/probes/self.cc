// self: run by the session when espy receives a signal.
#include "base/strings.h"
#include "probes/probe_support.h"

namespace espy::probes {

extern const spec::Provider kSelf;

namespace {

std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  const bool is_known = request.parts.size() == 2 && request.parts[0] == "signal" && request.parts[1] == "SIGUSR1";
  if (!is_known) return report_wrong_form(request, kSelf.form, kSelf.form);
  spec::BoundProbe bound;
  bound.probe.provider = kSelf.name;
  bound.probe.name = kSelf.form;
  bound.probe.function = request.parts[1];
  bound.probe.span = request.point.span;
  bound.share.method = kSelf.form;
  return {bound};
}

spec::ProbeContext context(spec::ContextRequest&) {
  spec::ProbeContext out;
  out.kind = program::ProgramKind::kRawTracepoint;
  out.is_limited_to_pid = false;
  return out;
}

std::vector<spec::ListedProbe> list(spec::ListRequest& request) {
  constexpr std::string_view kParts[] = {"signal", "SIGUSR1"};
  for (size_t i = 0; i < request.parts.size(); ++i)
    if (i >= std::size(kParts) || !glob_match(request.parts[i], kParts[i])) return {};
  return {{.name = std::string(kSelf.form), .arguments = {}}};
}

}  // namespace

extern const spec::Provider kSelf = {.name = "self",
                                     .doc = "Runs when espy receives the signal SIGUSR1.",
                                     .form = "self:signal:SIGUSR1",
                                     .bind = bind,
                                     .context = context,
                                     .list = list,
                                     .fires_rarely = true,
                                     .example = "self:signal:SIGUSR1 { print(@); }  interval:s:1 { @++; }"};

}  // namespace espy::probes
