#include "watch/watch.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "base/clock.h"
#include "base/limits.h"
#include "watch/screen.h"

namespace espy::watch {

Result<std::unique_ptr<Watch>> make_watch(WatchOptions options, const program::Program& program, output::Sink& sink) {
  return has_screen() ? Screen::create(std::move(options), program, sink)
                      : Printer::create(options.interval_ns, program, sink);
}

namespace {

timespec to_timespec(uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

}  // namespace

Result<OwnedFd> make_timer(uint64_t first_ns, uint64_t interval_ns) {
  OwnedFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  const itimerspec times = {to_timespec(interval_ns), to_timespec(first_ns)};
  if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &times, nullptr) != 0)
    return fail_errno("cannot make a timer", errno);
  return timer;
}

bool take_tick(int timer) {
  uint64_t count = 0;
  return ::read(timer, &count, sizeof(count)) == sizeof(count);
}

Result<std::unique_ptr<Watch>> Printer::create(uint64_t interval_ns, const program::Program& program,
                                               output::Sink& sink) {
  OwnedFd timer = TRY(make_timer(interval_ns, interval_ns));
  return std::unique_ptr<Watch>(new Printer(std::move(timer), program, sink));
}

void Printer::serve(runtime::LiveRun& run) {
  if (!take_tick(timer_.get())) return;
  const Status shown = catch_out_of_memory([&]() -> Status {
    const std::vector<output::MapView> views = read_maps(run, program_);
    sink_.text("time", clock_text() + "\n");
    for (const output::MapView& view : views) sink_.map(view);
    return {};
  });
  if (!shown) sink_.message("runtime_error", "there is not enough memory to print the maps", "", 0, 0, 0);
}

std::vector<output::MapView> read_maps(runtime::LiveRun& run, const program::Program& program) {
  std::map<std::string_view, program::ScriptMapId> by_name;
  for (const program::ScriptMapId id : program.script_maps.ids()) by_name.emplace(program.script_maps[id].name, id);
  std::vector<output::MapView> out;
  for (const auto& [name, id] : by_name)
    if (auto view = run.read_map(id)) out.push_back(std::move(*view));
  return out;
}

std::string clock_text() {
  const time_t now = ::time(nullptr);
  tm local = {};
  ::localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace espy::watch
