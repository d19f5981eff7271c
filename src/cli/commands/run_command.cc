// The default command: compiles a script, runs it, and prints what it saw.
#include "cli/command.h"
#include "record/recorder.h"
#include "run/run_script.h"

namespace espy::cli {

namespace {

int run(const Options& options, const Host& host) {
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  if (options.record.file) return record::run_recorded(options, host);
  const auto environment = host.open(options);
  return environment ? run::run_script(options, **environment, host.prepare) : complain(environment.error());
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
