#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>

#include "base/limits.h"
#include "base/process.h"
#include "cli/command.h"
#include "cli/tool_options.h"
#include "run/replay_host.h"
#include "tool/tool.h"

namespace {

// A closed stdin, stdout or stderr would be the number of the next file that is opened. Opened the wrong way round, it
// still fails where it is used.
void open_standard_descriptors() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

// The deepest scripts that the parser accepts need half a megabyte.
constexpr rlim_t kLeastStackBytes = 2 << 20;

// The kernel looks at the limit whenever the stack grows.
espy::Status raise_stack_limit() {
  if (espy::raise_limit(RLIMIT_STACK, kLeastStackBytes)) return {};
  rlimit limit = {};
  ::getrlimit(RLIMIT_STACK, &limit);
  return espy::fail(
      fmt::format("the stack is limited to {} KB, espy needs {}", limit.rlim_cur >> 10, kLeastStackBytes >> 10), 0,
      "`ulimit -s` shows the limit");
}

// espy's command line, or that of the tool that this executable is.
espy::Result<espy::cli::Options> parse(std::span<char* const> arguments) {
  if (!espy::tool::runs_tool()) return espy::cli::parse_options(arguments);
  return espy::cli::parse_tool_options(TRY(espy::cli::own_tool()), arguments);
}

espy::Status check_ring(const espy::cli::Options& options) {
  const espy::recording::RingLimits& ring = options.record.ring;
  if (ring.file_count > 0 && !ring.has_any())
    return espy::fail("--keep needs a size of files, or a time", 0, "--rotate 100M --keep 10, or --last 10m");
  if (ring.has_any() && !options.record.file && !(options.own && options.own->makes_recordings()))
    return espy::fail("--rotate and --last are limits of a recording", 0, "espy --record FILE, or espy record -o FILE");
  return {};
}

int run(int argc, char** argv) {
  using namespace espy::cli;
  ::signal(SIGCHLD, SIG_DFL);  // ignored, as the caller may have it, it leaves no status of children
  if (const espy::Status raised = raise_stack_limit(); !raised) return complain(raised.error());
  auto options = parse({argv + std::min(argc, 1), static_cast<size_t>(std::max(argc - 1, 0))});
  if (!options) return complain(options.error());
  if (options->record.file && options->command != commands().front())
    return complain({"--record goes with a script", 0, "espy --record FILE SCRIPT; `espy record` records probes"});
  if (options->output.appends && options->own && options->own->makes_recordings())
    return complain({"--append and --reopen are for text: nothing can be appended to a recording", 0,
                     "--rotate 100M --keep 10, or --last 10m"});
  if (const espy::Status good = check_ring(*options); !good) return complain(good.error());
  const bool is_replay = !options->replay.files.empty();
  if (is_replay) options->shown_diagnostic = espy::run::as_of_recording;
  const int status = options->command->run(*options, is_replay ? espy::run::replay_host() : espy::run::Host());
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return complain({"cannot write to the standard output"});
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  espy::report_uncaught_out_of_memory();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    espy::report_out_of_memory();
    return EXIT_FAILURE;
  }
}
