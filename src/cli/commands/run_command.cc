// The default command: compiles a script, runs it, and prints what it saw.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/bundled_files.h"
#include "cli/command.h"
#include "record/recorder.h"
#include "run/run_script.h"

namespace espy::cli {

namespace {

// A program without -e, a command with a typo, or a file that is not there.
Error no_such_script(const std::string& name) {
  if (name.find('{') != name.npos)
    return {fmt::format("there is no file `{}`", printable_line(name)), ENOENT,
            "a program on the command line needs -e: espy -e 'PROGRAM'"};
  if (name.find('/') != name.npos || name.ends_with(".bt"))
    return {fmt::format("there is no file `{}`", printable_line(name)), ENOENT};
  std::vector<std::string_view> known;
  for (const Command* command : commands())
    if (!command->word.empty()) known.push_back(command->word);
  for (const BundledTool& tool : bundled_tools()) known.push_back(tool.name);
  const std::string near = nearest(name, known);
  return {
      fmt::format("there is no command, tool or file `{}`", printable_line(name)), ENOENT,
      near.empty() ? "espy help lists the commands, espy tools the tools" : fmt::format("did you mean `{}`?", near)};
}

bool is_there(const std::string& file) { return file == "-" || ::access(file.c_str(), F_OK) == 0 || errno != ENOENT; }

int run(const Options& options, const Host& host) {
  if (!options.script.tool && options.script.file && !is_there(*options.script.file))
    return complain(no_such_script(*options.script.file));
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  if (options.record.file) return record::run_recorded(options, host);
  const auto environment = host.open(options);
  // The command of a tool and all that it starts; a script compares with `cpid` itself.
  if (environment && options.script.tool && options.tracee.command) (*environment)->config.tracee.follows = true;
  return environment ? run::run_script(options, **environment, host.prepare) : complain(environment.error());
}

constexpr std::string_view kUsage[] = {"run [OPTION...] FILE [ARGUMENT...]",
                                       "run [OPTION...] -e 'PROGRAM' [ARGUMENT...]",
                                       "[OPTION...] FILE.bt | DIRECTORY/FILE | -e 'PROGRAM'"};
constexpr std::string_view kCommon[] = {"e",      "pid",    "cmd",    "follow", "comm",  "cgroup",  "container",
                                        "output", "format", "watch",  "listen", "quiet", "verbose", "strict",
                                        "cost",   "budget", "unsafe", "record", "input"};
constexpr std::string_view kNotes = R"(FILE is `-` for the standard input. ARGUMENTs are $1, $2, ... of the script;
options that the script asks for by getopt() stand after `--`.
)";

constexpr Example kExamples[] = {
    {"espy run -c 'make' -o calls.txt tools/syscount.bt", "run a script while a command runs"},
    {"espy -e 'tracepoint:syscalls:sys_enter_* { @[probe] = count(); }'", "count system calls by name, until Ctrl-C"},
};

}  // namespace

extern const Command kRun = {
    .word = "run",
    .summary = "run a script: a file, or a program on the command line",
    .operands = Operands::kScript,
    .usage = kUsage,
    .notes = kNotes,
    .common = kCommon,
    .examples = kExamples,
    .run = run,
};

}  // namespace espy::cli
