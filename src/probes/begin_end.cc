// begin and end: run by the session itself, before anything is attached and after all is detached.
#include "probes/all.h"
#include "probes/common.h"

namespace espy::probes {

namespace {

template <const spec::Provider& kRow>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (!request.parts.empty()) return wrong_form(request, kRow.form, kRow.form);
  spec::BoundProbe bound;
  bound.probe.provider = kRow.name;
  bound.probe.name = kRow.name;
  bound.probe.span = request.point.span;
  bound.share = kRow.name;
  return {bound};
}

}  // namespace

const spec::Provider kBegin = {.name = "begin",
                               .doc = "Runs once, before any other probe is attached.",
                               .form = "begin",
                               .bind = bind<kBegin>,
                               .context = once_context,
                               .phase = spec::Provider::Phase::kBegin,
                               .fires_rarely = true,
                               .example = "begin { printf(\"Hello, World!\\n\"); }"};

const spec::Provider kEnd = {
    .name = "end",
    .doc = "Runs once, after all other probes are detached: at exit(), Ctrl-C, or when the traced process ends.",
    .form = "end",
    .bind = bind<kEnd>,
    .context = once_context,
    .phase = spec::Provider::Phase::kEnd,
    .fires_rarely = true,
    .example = "begin { exit(); } end { printf(\"done\\n\"); }"};

}  // namespace espy::probes
