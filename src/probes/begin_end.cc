// begin and end: run by the session before the probes are attached and after they are detached.
#include "probes/probe_support.h"

namespace espy::probes {

namespace {

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (!request.parts.empty()) return report_wrong_form(request, kRow.form, kRow.form);
  spec::BoundProbe bound;
  bound.probe.provider = kRow.name;
  bound.probe.name = kRow.name;
  bound.probe.span = request.point.span;
  bound.share.method = kRow.name;
  return {bound};
}

}  // namespace

extern const spec::Provider kBegin = {.name = "begin",
                                      .doc = "Runs once, before any other probe is attached.",
                                      .form = "begin",
                                      .bind = bind<kBegin>,
                                      .context = once_context,
                                      .phase = spec::Provider::Phase::kBegin,
                                      .fires_rarely = true,
                                      .example = "begin { printf(\"Hello, World!\\n\"); }"};

extern const spec::Provider kEnd = {
    .name = "end",
    .doc = "Runs once, after all other probes are detached: after exit(), Ctrl-C, or the end of the traced process.",
    .form = "end",
    .bind = bind<kEnd>,
    .context = once_context,
    .phase = spec::Provider::Phase::kEnd,
    .fires_rarely = true,
    .example = "begin { exit(); } end { printf(\"done\\n\"); }"};

}  // namespace espy::probes
