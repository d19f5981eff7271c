#include "cli/open_watch.h"

#include <unistd.h>

#include "cli/environment.h"
#include "runtime/record_decoder.h"

namespace espy::cli {

Result<std::unique_ptr<watch::Watch>> open_watch(const Options& options, const check::Checked& checked,
                                                 const program::Program& program, output::Sink& sink) {
  if (options.watch_interval_ns == 0) return nullptr;
  if (!options.recordings.empty() || checked.config.runs_tests || checked.config.runs_benchmarks)
    return fail("--watch shows a run of this machine while it goes on: not with -i, --test or --bench");
  return watch::make_watch({.interval_ns = options.watch_interval_ns,
                            .script = script_name(options),
                            .style = runtime::text_style(checked.config),
                            .has_colors = !is_color_unwanted(),
                            .is_text_hidden = !options.output_file,
                            .are_messages_hidden = ::isatty(STDERR_FILENO) == 1},
                           program, sink);
}

}  // namespace espy::cli
