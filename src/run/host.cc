#include "run/host.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "run/run_script.h"

namespace espy::run {

namespace {

// The process of a thread, by /proc; nullopt if it is not known.
std::optional<int64_t> process_of_thread(uint32_t tid) {
  constexpr std::string_view kKey = "\nTgid:";
  const std::string text = read_stream(fmt::format("/proc/{}/status", tid), kMaxTextBytes).value_or("");
  const size_t at = text.find(kKey);
  if (at == text.npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(at + kKey.size());
  return parse_int(trim(rest.substr(0, rest.find('\n'))));
}

// Of -p. pidfd_open(2) fails for a thread other than the first of its process: EINVAL, or ENOENT in later kernels.
Status check_process(uint32_t pid) {
  const OwnedFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.valid()) return {};
  if (errno == ESRCH)
    return fail(fmt::format("there is no process {}", pid), ESRCH,
                has_own_pid_namespace() ? "a container shows the processes of the machine with --pid=host" : "");
  if (errno != EINVAL && errno != ENOENT) return {};
  const auto owner = process_of_thread(pid);
  return fail(
      fmt::format("{} is a thread, not a process", pid), EINVAL,
      owner ? fmt::format("it belongs to process {}: -p {}, and /tid == {}/ for this thread alone", *owner, *owner, pid)
            : "-p takes the ids of processes");
}

}  // namespace

Status check_can_run(const RunOptions& options) {
  const auto is_help = [](const auto& option) { return option.first == "help"; };
  const bool ends_early = ends_before_load(options) || std::ranges::any_of(options.config.arguments.named, is_help);
  for (const spec::TracedProcess& process : options.config.tracee.processes) TRY_STATUS(check_process(process.pid));
  return ends_early ? Status() : require_privileges();
}

}  // namespace espy::run
