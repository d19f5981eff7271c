#include "run/live_views.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "check/check.h"
#include "run/environment.h"
#include "runtime/record_decoder.h"

namespace espy::run {

Result<std::unique_ptr<watch::Watch>> open_watch(const RunOptions& options, const check::Checked& checked,
                                                 const program::Program& program, const Environment& environment,
                                                 output::Sink& sink) {
  if (options.output.watch_interval_ns == 0) return nullptr;
  if (!options.replay.files.empty() || checked.config.runs_tests || checked.config.runs_benchmarks)
    return fail("--watch shows a live run of this machine: not with -i, --test or --bench");
  return watch::make_watch({.interval_ns = options.output.watch_interval_ns,
                            .script = script_name(options),
                            .style = runtime::text_style(checked.config),
                            .scratch_maps = check::scratch_maps(checked, environment.types),
                            .has_colors = !is_color_unwanted(),
                            .is_text_hidden = !options.output.file,
                            .are_messages_hidden = ::isatty(STDERR_FILENO) == 1},
                           program, sink);
}

namespace {

constexpr int64_t kMaxMetricSamples = 10'000;  // by default

}  // namespace

Result<std::unique_ptr<serve::LiveServer>> open_live_server(const RunOptions& options, const check::Checked& checked,
                                                            const program::Program& program,
                                                            const Environment& environment, output::Sink& sink) {
  if (!options.output.listen) return nullptr;
  if (!options.replay.files.empty() || checked.config.runs_tests || checked.config.runs_benchmarks)
    return fail("--listen shows a live run of this machine: not with -i, --test or --bench");
  const auto value_of = [&](std::string_view name) { return check::config_value(checked.ast, name, std::getenv); };
  serve::LiveServerOptions out{
      .address = TRY(serve::parse_address(*options.output.listen)),
      .script = script_name(options),
      .max_metric_samples = static_cast<size_t>(parse_int(value_of("max_metric_samples")).value_or(kMaxMetricSamples))};
  out.token = TRY(serve::choose_token(std::getenv("ESPY_LISTEN_TOKEN"), out.address));
  auto maps = TRY(serve::describe_maps(checked, program, environment.types, environment.sources, value_of("labels")));
  OwnedFd listener = TRY(serve::listen_at(out.address));
  auto server = TRY(serve::LiveServer::create(std::move(out), std::move(listener), std::move(maps), program,
                                              runtime::text_style(checked.config), sink));
  std::fputs(fmt::format("Listening at {}\n", server->url()).c_str(), stderr);
  return server;
}

}  // namespace espy::run
