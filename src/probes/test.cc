// test and bench: run by the session, one after another, with --test or --bench.
#include "probes/probe_support.h"

namespace espy::probes {

namespace {

template <const spec::Provider& kRow, bool spec::Config::*kIsWanted>
std::vector<spec::BoundProbe> bind(spec::BindRequest& request) {
  if (request.parts.size() != 1 || request.parts[0].empty()) return report_wrong_form(request, kRow.form, kRow.example);
  spec::BoundProbe bound;
  bound.probe.provider = kRow.name;
  bound.probe.name = full_name(kRow.name, request.parts);
  bound.probe.function = request.parts[0];
  bound.probe.span = request.point.span;
  bound.share.place = bound.probe.name;
  bound.is_wanted = request.config.*kIsWanted;
  return {bound};
}

spec::ProbeContext context(spec::ContextRequest& request) {
  spec::ProbeContext out = once_context(request);
  out.returns_value = true;
  return out;
}

}  // namespace

extern const spec::Provider kTest = {
    .name = "test",
    .doc =
        "A test: runs once with --test. It fails if it returns a number other than 0, calls "
        "errorf(), or an assert() in it fails. Ignored without --test.",
    .form = "test:NAME",
    .bind = bind<kTest, &spec::Config::runs_tests>,
    .context = context,
    .phase = spec::Provider::Phase::kTest,
    .example = "test:sums { assert(1 + 1 == 2, \"sums\"); }"};

extern const spec::Provider kBench = {
    .name = "bench",
    .doc = "A benchmark: runs many times with --bench, which prints its time per run. Ignored without --bench.",
    .form = "bench:NAME",
    .bind = bind<kBench, &spec::Config::runs_benchmarks>,
    .context = context,
    .phase = spec::Provider::Phase::kBench,
    .example = "bench:counting { @ = count(); }"};

}  // namespace espy::probes
