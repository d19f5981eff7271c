// The default command: compiles a script, runs it, and prints what it saw.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "cli/command.h"
#include "cli/run_script.h"

namespace espy::cli {

Status check_can_run(const Options& options) {
  const auto is_help = [](const auto& option) { return option.first == "help"; };
  const bool ends_early = ends_before_load(options) || std::ranges::any_of(options.config.named, is_help);
  if (!ends_early) TRY_STATUS(require_privileges());
  const std::optional<uint32_t> pid = options.config.pid;
  if (pid && ::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH)
    return fail(fmt::format("there is no process {}", *pid), ESRCH);
  return {};
}

namespace {

int run(const Options& options, const Host& host) {
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  return environment ? run_script(options, **environment, host.prepare) : complain(environment.error());
}

constexpr std::string_view kUsage[] = {"[options] FILE [arguments]", "[options] -e 'PROGRAM' [arguments]"};

constexpr Example kExamples[] = {
    {"espy -e 'tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }'",
     "which process opens which file"},
    {"espy -e 'tracepoint:syscalls:sys_enter_* { @[probe] = count(); }'", "system calls by name, until Ctrl-C"},
};

}  // namespace

extern const Command kRun = {
    .operands = Operands::kScript,
    .usage = kUsage,
    .examples = kExamples,
    .run = run,
};

}  // namespace espy::cli
