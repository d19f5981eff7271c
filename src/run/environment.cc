#include "run/environment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "builtins/all_builtins.h"
#include "check/check.h"
#include "load/find_features.h"
#include "probes/all_probes.h"
#include "run/control_group.h"
#include "syntax/parser.h"
#include "tool/tool.h"

namespace espy::run {

spec::Registry make_registry() { return spec::Registry(builtins::all(), probes::all()); }

namespace {

constexpr const char* kTracefsEvents = "/sys/kernel/tracing/events";

// The inodes of the first namespaces: PROC_PID_INIT_INO, PROC_USER_INIT_INO.
constexpr uint64_t kFirstPidNamespace = 0xEFFFFFFC;
constexpr uint64_t kFirstUserNamespace = 0xEFFFFFFD;

// Missing in old headers.
constexpr unsigned kCapPerfmon = 38;
constexpr unsigned kCapBpf = 39;

uint64_t effective_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return 0;
  return uint64_t{data[1].effective} << 32 | data[0].effective;
}

// tracefs describes tracepoints, and may not be mounted yet. A failure is reported where tracefs is needed.
void mount_tracefs() {
  if (::access(kTracefsEvents, F_OK) != 0) ::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr);
}

Result<std::vector<kernel::Feature>> parse_features(const std::vector<std::string>& names) {
  std::vector<kernel::Feature> out;
  for (const std::string& name : names) {
    const auto feature = kernel::find_feature(name);
    if (!feature) {
      std::vector<std::string_view> known;
      for (const kernel::FeatureRow& row : kernel::feature_rows()) known.push_back(row.name);
      const std::string near = nearest(name, known);
      return fail("there is no kernel feature `" + name + "`", 0,
                  near.empty() ? "espy --info lists them" : "did you mean `" + near + "`?");
    }
    out.push_back(*feature);
  }
  return out;
}

void connect_btf(Environment& environment) {
  Environment* e = &environment;
  e->machine->use_btf({[e](std::string_view name) { return e->kernel->kfunc_id(name); },
                       [e](std::string_view tag) -> std::optional<uint32_t> {
                         const types::TypeId type = e->kernel->find_struct(e->types, tag);
                         const auto location = type ? e->kernel->btf_location(e->types, type) : std::nullopt;
                         return location ? std::optional(location->btf_id) : std::nullopt;
                       },
                       [e](std::string_view tag, std::string_view member) {
                         types::Types types;
                         const types::TypeId type = e->kernel->find_struct(types, tag);
                         if (!type) return false;
                         e->kernel->complete(types, type);
                         const auto& members = types[type].members;
                         return std::ranges::find(members, member, &types::Member::name) != members.end();
                       }});
}

std::optional<spec::PidNamespace> find_pid_namespace() {
  struct stat found = {};
  if (::stat("/proc/self/ns/pid", &found) != 0 || found.st_ino == kFirstPidNamespace) return std::nullopt;
  char self[16] = "";
  const bool is_read = ::readlink("/proc/self", self, sizeof(self) - 1) > 0;
  return spec::PidNamespace{uint64_t{major(found.st_dev)} << 20 | minor(found.st_dev), found.st_ino,
                            is_read && parse_int(self) == ::getpid()};
}

// Returns the names of the variables of the environment that are meant for espy.
std::vector<std::string> own_variables() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with("BPFTRACE_") || text.starts_with("ESPY_")) out.emplace_back(text.substr(0, text.find('=')));
  }
  return out;
}

}  // namespace

std::optional<spec::ProcessStart> find_process_start(const spec::Config& config, uint32_t pid) {
  if (config.tracee.pid_namespace && !config.tracee.pid_namespace->numbers_proc) return std::nullopt;
  const auto ticks = kernel::start_ticks(pid);
  if (!ticks) return std::nullopt;
  const uint64_t tick_ns = kNsPerSecond / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return spec::ProcessStart{*ticks * tick_ns - static_cast<uint64_t>(time_namespace_offset_ns(CLOCK_BOOTTIME)),
                            tick_ns};
}

std::unique_ptr<Environment> make_environment(const RunOptions& options, std::unique_ptr<load::Machine> machine,
                                              std::unique_ptr<kernel::Kernel> kernel) {
  auto environment = std::make_unique<Environment>(Environment{make_registry(),
                                                               std::move(machine),
                                                               std::move(kernel),
                                                               {},
                                                               symbols::Symbolizer(options.symbols),
                                                               {},
                                                               {},
                                                               options.config});
  environment->config.tracee.pid_namespace = find_pid_namespace();
  for (spec::TracedProcess& process : environment->config.tracee.processes)
    process.start = find_process_start(environment->config, process.pid);
  environment->tool = options.script.tool;
  connect_btf(*environment);
  check::read_environment(
      environment->config, [](const char* name) { return ::getenv(name); }, environment->diagnostics);
  check::warn_of_unknown_variables(own_variables(), environment->diagnostics);
  return environment;
}

Result<std::unique_ptr<Environment>> open_environment(const RunOptions& options) {
  mount_tracefs();
  const std::vector<kernel::Feature> disabled = TRY(parse_features(options.kernel.disabled_features));
  auto machine = load::open_linux();
  load::Machine* tried = machine.get();
  kernel::Tries tries;
  // Opened by the first question: some commands have none.
  const std::string cache_file =
      options.script.tool ? fmt::format("features-{:08x}", options.script.tool->checksum) : "features";
  tries.feature = [tried, disabled, cache_file,
                   cache = std::shared_ptr<load::FeatureCache>()](kernel::Feature feature) mutable {
    if (std::ranges::find(disabled, feature) != disabled.end()) return false;
    if (!cache)
      cache = std::make_shared<load::FeatureCache>(load::kFeatureCacheDirectory, cache_file, load::feature_cache_key());
    return cache->find(feature, [&] { return tried->try_feature(feature); });
  };
  tries.kfunc = [tried](uint32_t kfunc, uint32_t program_type) { return tried->try_kfunc(kfunc, program_type); };
  auto kernel = TRY(kernel::open_kernel("/", std::move(tries)));
  if (!options.kernel.traceable_functions.empty())
    TRY_STATUS(kernel->use_traceable_functions(options.kernel.traceable_functions));
  auto environment = make_environment(options, std::move(machine), std::move(kernel));
  environment->config.tracee.cgroup = TRY(find_control_group(options.tracee.cgroup, options.tracee.container));
  return environment;
}

void follow_command(const RunOptions& options, Environment& environment) {
  if (!options.tracee.command || !options.config.tracee.processes.empty()) return;
  environment.config.tracee.follows = environment.kernel->find_struct(environment.types, "task_struct").valid();
}

namespace {

// Capabilities of other user namespaces, of rootless containers for example, give no rights over the kernel.
bool is_in_first_user_namespace() {
  struct stat found = {};
  return ::stat("/proc/self/ns/user", &found) != 0 || found.st_ino == kFirstUserNamespace;
}

}  // namespace

bool has_own_pid_namespace() { return find_pid_namespace().has_value(); }

Status require_privileges() {
  if (!is_in_first_user_namespace())
    return fail("tracing needs CAP_BPF and CAP_PERFMON in the first user namespace, and this process is in another one",
                EPERM, "a rootless container cannot trace: run it as root, or espy outside of it");
  const uint64_t effective = effective_capabilities();
  const auto has = [&](unsigned capability) { return (effective >> capability & 1) != 0; };
  if (is_administrator() || (has(kCapBpf) && has(kCapPerfmon))) return {};
  const char* missing = has(kCapBpf) ? "CAP_PERFMON" : has(kCapPerfmon) ? "CAP_BPF" : "CAP_BPF and CAP_PERFMON";
  if (::geteuid() != 0)
    return fail(fmt::format("tracing needs root or {}, which this process lacks: run espy with sudo", missing), EPERM);
  return fail(
      fmt::format("tracing needs {}, which this process lacks although it is root's", missing), EPERM,
      "a container gets them by `podman run --cap-add BPF,PERFMON`; docs/reference/privileges.md says what else it "
      "needs");
}

bool is_administrator() { return (effective_capabilities() >> CAP_SYS_ADMIN & 1) != 0; }

bool can_read_tracefs() { return ::faccessat(AT_FDCWD, kTracefsEvents, R_OK | X_OK, AT_EACCESS) == 0; }

Result<source::SourceId> read_script(const RunOptions& options, source::Sources& sources) {
  if (options.script.tool) return sources.add(options.script.tool->script_name, options.script.tool->script);
  if (options.script.text) return sources.add("stdin", *options.script.text);
  if (*options.script.file == "-") return sources.add("stdin", TRY(read_stream("/dev/stdin", kMaxTextBytes)));
  std::string text = TRY(read_stream(*options.script.file, kMaxTextBytes));
  if (text.starts_with("\x7f"
                       "ELF"))
    return fail(fmt::format("{} is a program, not a script", *options.script.file), 0,
                "run the tool directly, without espy");
  return sources.add(*options.script.file, std::move(text));
}

syntax::Ast parse_script(source::SourceId script, check::CheckRequest& request) {
  const syntax::Prelude prelude = check::read_script_headers(script, request);
  // Without its headers a script has errors that are not its own.
  if (request.diagnostics.has_errors()) return {};
  return syntax::parse(request.sources, script, request.diagnostics, prelude);
}

std::string script_name(const RunOptions& options) {
  return options.script.text || !options.script.file ? "-e" : std::string(base_name(*options.script.file));
}

bool is_color_unwanted() {
  const char* no_color = ::getenv("NO_COLOR");  // no-color.org: set, and not empty
  const char* terminal = ::getenv("TERM");
  return (no_color != nullptr && *no_color != '\0') || (terminal != nullptr && std::string_view(terminal) == "dumb");
}

bool report(const source::Diagnostics& diagnostics, const source::Sources& sources, const RunOptions& options) {
  const char* color = ::getenv("BPFTRACE_COLOR");
  const std::string_view when = color != nullptr ? color : "auto";
  const bool is_colored = when == "always" || (when == "auto" && !is_color_unwanted() && ::isatty(STDERR_FILENO) == 1);
  source::Diagnostics shown;
  for (const source::Diagnostic& diagnostic : diagnostics.all())
    shown.add(options.shown_diagnostic ? options.shown_diagnostic(diagnostic) : diagnostic);
  std::fputs(render(shown, sources, {.is_colored = is_colored, .has_warnings = !options.output.hides_warnings}).c_str(),
             stderr);
  return diagnostics.has_errors();
}

namespace {

// What to do about a resource that is used up, wherever it was.
std::string_view resource_hint(int code) {
  switch (code) {
    case EMFILE: return "`ulimit -n` shows how many files may be open; root, and CAP_SYS_RESOURCE, may raise it";
    case ENFILE: return "`sysctl fs.file-max` shows how many files may be open on this machine";
    case ENOMEM:
      return "`ulimit -v` and memory.max of the cgroup (MemoryMax in systemd) show the limits; lower max_map_keys, "
             "perf_rb_pages or unwind_table_rows to use less memory";
    case EAGAIN: return "`ulimit -u` shows how many processes may run, `ulimit -l` how much memory may be locked";
    case ENOSPC: return "`df` shows which file system is full";
    default: return "";
  }
}

}  // namespace

int complain(const Error& error) {
  const std::string hint = error.hint.empty() ? std::string(resource_hint(error.code)) : error.hint;
  const std::string name = tool::runs_tool() ? printable(program_invocation_short_name) : "espy";
  std::fprintf(stderr, "%s: %s\n", name.c_str(), printable(error.message).c_str());
  if (!hint.empty()) std::fprintf(stderr, "  hint: %s\n", printable(hint).c_str());
  return EXIT_FAILURE;
}

}  // namespace espy::run
