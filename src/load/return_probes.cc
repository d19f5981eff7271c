#include "load/return_probes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/fd.h"
#include "base/strings.h"

namespace espy::load {

namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";

// Writes a line to kprobe_events. Appends, as opening it for anything else may remove the probes of others.
Status command(const std::string& line) {
  const OwnedFd file(::open(fmt::format("{}/kprobe_events", kTracefs).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file.valid()) return fail_errno("cannot open kprobe_events", errno);
  if (::write(file.get(), line.data(), line.size()) < 0) return fail_errno("cannot define a probe", errno);
  return {};
}

// Removes those of a group that are not in use. Returns whether none is left.
bool remove_unused(const std::string& group) {
  const auto events = read_file(fmt::format("{}/kprobe_events", kTracefs));
  if (!events) return true;
  bool is_empty = true;
  for (const std::string_view line : split(*events, '\n')) {  // r4096:GROUP/EVENT vfs_read
    const size_t begin = line.find(':' + group + '/');
    if (begin == std::string_view::npos) continue;
    const std::string_view name = line.substr(begin + 1, line.find(' ', begin) - begin - 1);
    if (!command(fmt::format("-:{}", name))) is_empty = false;
  }
  return is_empty;
}

// The perf events are closed after the end of the process that has them, each by a grace period.
void remove_when_unused(const std::string& group) {
  constexpr int kSeconds = 60;
  const timespec pause = {0, 20'000'000};
  for (int i = 0; i < kSeconds * 50 && !remove_unused(group); ++i) ::nanosleep(&pause, nullptr);
}

// A name that no other process has used, as it may be in another namespace of pids.
std::string new_group() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return fmt::format("espy_{}_{:x}{:08x}", ::getpid(), now.tv_sec, now.tv_nsec);
}

}  // namespace

ReturnProbes::~ReturnProbes() {
  if (janitor_) janitor_->outlive();
}

Result<uint64_t> ReturnProbes::define(const std::string& function, uint32_t max_calls) {
  if (::access(fmt::format("{}/kprobe_events", kTracefs).c_str(), W_OK) != 0)
    return fail_errno("cannot write kprobe_events", errno);
  if (!janitor_)
    janitor_.emplace(TRY(Janitor::start([]() -> Result<std::string> { return new_group(); }, remove_when_unused)));
  const std::string event = fmt::format("{}/r{}", janitor_->made(), count_++);
  TRY_STATUS(command(fmt::format("r{}:{} {}", max_calls, event, function)));
  const std::string id = TRY(read_file(fmt::format("{}/events/{}/id", kTracefs, event)));
  const auto number = parse_int(trim(id));
  if (!number) return fail("an event of tracefs has no number");
  return static_cast<uint64_t>(*number);
}

}  // namespace espy::load
