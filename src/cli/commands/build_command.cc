// espy build: a tool, which is one file to run a script on machines without espy, the script, or a compiler.
#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/strings.h"
#include "base/untrusted_file.h"
#include "cli/check_script.h"
#include "cli/command.h"
#include "cli/systemd_unit.h"
#include "cli/tool_options.h"
#include "kernel/arch/arch.h"
#include "run/run_script.h"
#include "tool/tool.h"

namespace espy::cli {

namespace {

namespace fs = std::filesystem;

struct BuildOptions : CommandOptions {
  std::vector<std::string> kernels;   // --on
  const kernel::Arch* cpu = nullptr;  // --for; null: that of the executable
  std::string executable;             // --espy; empty: the one that runs
  bool writes_unit = false;
};

BuildOptions& own(Options& options) { return static_cast<BuildOptions&>(*options.own); }
const BuildOptions& own(const Options& options) { return static_cast<const BuildOptions&>(*options.own); }

Status set_cpu(Options& options, std::string_view text) {
  own(options).cpu = kernel::find_arch(text);
  if (own(options).cpu != nullptr) return {};
  return fail(fmt::format("there is no espy for the CPU `{}`", text), 0, "--for takes arm64 or amd64");
}

Status set_executable(Options& options, std::string_view text) {
  own(options).executable = text;
  return {};
}

Status add_kernel(Options& options, std::string_view text) {
  own(options).kernels.emplace_back(text);
  return {};
}

Status set_unit(Options& options, std::string_view) {
  own(options).writes_unit = true;
  return {};
}

constexpr OptionRow kRows[] = {
    {0, "for", "CPU", "target CPU: arm64 or amd64; give its espy binary with --espy", set_cpu},
    {0, "espy", "FILE", "make the tool from this espy binary (the running one)", set_executable},
    {0, "on", "KERNEL",
     "check the script for this kernel, a file of `espy snapshot`; may be repeated (the running kernel)", add_kernel},
    {0, "systemd", "", "also write TOOL.service, a systemd unit", set_unit},
};

// ---- The executable

struct Base {
  std::string bytes;
  const kernel::Arch* arch = nullptr;
};

Result<Base> read_base(const BuildOptions& options) {
  if (options.cpu != nullptr && options.cpu != &kernel::host_arch() && options.executable.empty())
    return fail(fmt::format("a tool for {0} is made of an espy for {0}", options.cpu->name), 0, "--espy FILE names it");
  const std::string path = options.executable.empty() ? "/proc/self/exe" : options.executable;
  Base out;
  out.bytes = TRY(read_untrusted(path, max_binary_bytes()));
  const auto found = tool::describe(out.bytes);
  if (!found) return fail(fmt::format("{} {}", path, found.error().message), found.error().code, found.error().hint);
  if (found->script) return fail(fmt::format("{} is a tool already, not espy", path));
  out.arch = kernel::find_arch(found->elf_machine);
  if (out.arch == nullptr) return fail(fmt::format("{} is for an unknown CPU", path));
  if (options.cpu != nullptr && out.arch != options.cpu)
    return fail(fmt::format("{} is for {}, not for {}", path, out.arch->name, options.cpu->name));
  return out;
}

// ---- The script

// The standard input is read once, for all kernels.
Result<Options> with_script(const Options& options) {
  Options out = options;
  if (!options.names.empty()) out.script.file = options.names.front();
  if (out.script.file == "-") out.script.text = TRY(read_stream("/dev/stdin", kMaxTextBytes));
  return out;
}

// Prints what is wrong with the script. Returns whether there is something.
bool report_problems(const ScriptVerdict& verdict, const std::string& kernel) {
  if (verdict.problems.empty()) return false;
  std::string out = kernel.empty() ? "" : fmt::format("on {}:\n", kernel);
  for (const ScriptProblem& each : verdict.problems) out += each.text.empty() ? each.message + "\n" : each.text;
  std::fputs(printable(out).c_str(), stderr);
  return true;
}

// The script of a tool for another CPU cannot be checked for the kernel that runs, but for its syntax.
struct Checking {
  const Options& options;
  const Host& host;
  bool is_for_this_cpu = true;
};

Result<std::optional<ScriptVerdict>> check_for_all(const Checking& checking, tool::Tool& tool) {
  CheckedKernels kernels;
  const std::vector<std::string>& on = own(checking.options).kernels;
  TRY_STATUS(kernels.use(on));
  std::optional<ScriptVerdict> out;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto environment = TRY(kernels.environment(i, checking.options, checking.host));
    ScriptVerdict verdict = TRY(check_script(checking.options, *environment, i == 0 ? &tool.files : nullptr));
    tool.script_name = verdict.name;
    tool.script = verdict.script;
    tool.knows_all_options = checking.is_for_this_cpu || !on.empty();
    if (verdict.is_unreadable || tool.knows_all_options) {
      if (report_problems(verdict, on.empty() ? "" : kernels.name(i))) return std::nullopt;
      report(environment->diagnostics, environment->sources, checking.options);
    }
    if (!out) out = std::move(verdict);
  }
  return out;
}

// ---- The files

// Replaces the file whole, also while it runs.
Status write_file(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  const OwnedFd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) return fail_errno("cannot write to " + path, errno);
  Status done = write_all(file.get(), bytes);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0) done = fail_errno("cannot write to " + path, errno);
  if (!done) ::unlink(temporary.c_str());
  return done;
}

Result<std::string> output_path(const Options& options) {
  if (options.output.file) return *options.output.file;
  const fs::path script = options.names.empty() ? "" : options.names.front();
  if (script.extension() != ".bt") return fail("the tool needs a name", 0, "-o TOOL");
  return script.stem().string();
}

Status write_unit(const std::string& path, const tool::Tool& tool, const ScriptVerdict& verdict) {
  const std::string description = fmt::format("{} ({}, traced by espy)", tool.name, tool.script_name);
  const bool has_budget =
      std::ranges::any_of(tool.arguments, [](const std::string& each) { return each.starts_with("--budget="); });
  const UnitRequest request{tool.name, description, verdict.capabilities, has_budget};
  return write_file(path + ".service", systemd_unit(request), 0644);
}

Result<int> build_tool(const Options& given, const Host& host) {
  if (given.names.size() + (given.script.text ? 1 : 0) != 1)
    return fail("espy build takes one script", 0, "espy build FILE -o TOOL");
  const std::string path = TRY(output_path(given));
  if (!given.names.empty()) TRY_STATUS(check_script_is_kept("-o", path, given.names.front()));
  tool::Tool tool;
  tool.name = fs::path(path).filename().string();
  if (own(given).writes_unit && !is_unit_name(tool.name))
    return fail(fmt::format("`{}` cannot be the name of a unit of systemd", printable_line(tool.name)), 0,
                "the name after -o takes letters, digits and `:-_.`, and begins with none of `-.`");
  tool.arguments = TRY(built_in_arguments(given, kRows));
  Base base = TRY(read_base(own(given)));
  const bool is_for_this_cpu = base.arch == &kernel::host_arch();
  const Options options = TRY(with_script(given));
  const auto verdict = TRY(check_for_all({options, host, is_for_this_cpu}, tool));
  if (!verdict) return EXIT_FAILURE;
  if (!is_for_this_cpu && !tool.files.headers.empty())
    return fail(
        fmt::format("the headers that the script includes were compiled for this CPU, not for {}", base.arch->name), 0,
        "build the tool on that CPU, or define in the script what it uses");
  if (own(given).writes_unit && verdict->capabilities.empty())
    return fail("the systemd unit needs a checked script to know its capabilities", 0,
                "--on KERNEL checks it for a kernel of the other CPU");
  tool.options = verdict->options;
  if (!tool.knows_all_options)
    std::fputs(printable(fmt::format("WARNING: only the syntax of the script was checked: --on KERNEL checks it for a "
                                     "kernel of {}\n",
                                     base.arch->name))
                   .c_str(),
               stderr);
  TRY_STATUS(write_file(path, TRY(tool::with_script(std::move(base.bytes), tool::encode(tool))), 0755));
  if (own(given).writes_unit) TRY_STATUS(write_unit(path, tool, *verdict));
  return EXIT_SUCCESS;
}

int build(const Options& options, const Host& host) {
  const auto status = build_tool(options, host);
  return status ? *status : complain(status.error());
}

constexpr std::string_view kBuildUsage[] = {"build [OPTION...] FILE -o TOOL", "build [OPTION...] -e 'PROGRAM' -o TOOL"};
constexpr std::string_view kBuildCommon[] = {"output", "e", "format", "comm", "cgroup", "user", "strict", "budget"};
constexpr std::string_view kBuildNotes =
    "TOOL is one file with the script inside. It needs neither espy nor a compiler.\n"
    "General options that you give here hold for each run of TOOL.\n";

constexpr Example kBuildExamples[] = {
    {"espy build tools/opensnoop.bt -o opensnoop", "make a tool, which you start with ./opensnoop -p 4711"},
    {"espy build --on KERNEL --systemd watch.bt -o watch", "check it for another kernel, and add a systemd unit"}};

}  // namespace

extern const Command kBuild = {
    .word = "build",
    .summary = "make one executable file of a script, to copy to other machines",
    .topic = Topic::kScripts,
    .operands = Operands::kOptionalNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<BuildOptions>()); },
    .usage = kBuildUsage,
    .notes = kBuildNotes,
    .common = kBuildCommon,
    .examples = kBuildExamples,
    .run = build,
};

}  // namespace espy::cli
