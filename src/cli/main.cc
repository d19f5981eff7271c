// espy, from a script to what it saw. Read `run_program` in cli/run.cc and you know the way.
#include <cstdio>
#include <cstdlib>

#include "cli/environment.h"
#include "cli/options.h"
#include "cli/run_script.h"

namespace espy::cli {
namespace {

int dispatch(const Options& options) {
  switch (options.mode) {
    case Mode::kHelp: std::fputs(help_text().c_str(), stdout); return EXIT_SUCCESS;
    case Mode::kVersion: std::puts("espy " ESPY_VERSION); return EXIT_SUCCESS;
    case Mode::kInfo: return show_info(options);
    case Mode::kList: return list_probes(options);
    case Mode::kFormat: return format_program(options);
    case Mode::kReference: return show_reference(options);
    case Mode::kDescribe: return describe(options);
    case Mode::kTrace: return trace(options);
    case Mode::kRun: return run_program(options);
  }
  return EXIT_FAILURE;
}

int run(int argc, char** argv) {
  const auto options = parse_options({argv + 1, static_cast<size_t>(argc - 1)});
  if (!options) {
    complain(options.error());
    return EXIT_FAILURE;
  }
  const int status = dispatch(*options);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  complain({"cannot write to the standard output"});
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace espy::cli

int main(int argc, char** argv) { return espy::cli::run(argc, argv); }
