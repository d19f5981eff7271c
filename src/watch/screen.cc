#include "watch/screen.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "watch/interval_timer.h"
#include "watch/printer.h"

namespace espy::watch {

namespace {

constexpr uint64_t kPauseFactor = 10;  // of the time that it took to read the maps: at most a tenth of a CPU

// Those of the terminal that end nothing. They are taken by a descriptor, so that no handler runs within other code.
sigset_t terminal_signals() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : {SIGWINCH, SIGTSTP, SIGCONT}) sigaddset(&out, signal);
  return out;
}

std::string losses_text(const output::LossReport& losses) {
  std::string out;
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    if (losses.totals[kind] > 0)
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", losses.totals[kind],
                         output::name_of(static_cast<program::LossKind>(kind)).column);
  if (const size_t count = losses.file_changes.size(); count > 0)
    out += fmt::format("{}{} changed files", out.empty() ? "" : ", ", count);
  if (const size_t count = losses.others.size(); count > 0)
    out += fmt::format("{}{} other losses", out.empty() ? "" : ", ", count);
  if (losses.uncertain_addresses > 0)
    out += fmt::format("{}{} uncertain addresses", out.empty() ? "" : ", ", losses.uncertain_addresses);
  return out;
}

}  // namespace

Screen::Screen(WatchOptions options, const program::Program& program, output::Sink& sink)
    : options_(std::move(options)),
      program_(program),
      held_(sink, options_.style, options_.is_text_hidden, options_.are_messages_hidden),
      log_(held_, lines_, options_.style),
      tables_(options_.style),
      terminal_(options_.has_colors) {}

Result<std::unique_ptr<Watch>> Screen::create(WatchOptions options, const program::Program& program,
                                              output::Sink& sink) {
  std::unique_ptr<Screen> out(new Screen(std::move(options), program, sink));
  TRY_STATUS(out->start());
  return std::unique_ptr<Watch>(std::move(out));
}

Status Screen::add(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail_errno("cannot wait for the terminal", errno);
  return {};
}

Status Screen::start() {
  epoll_ = OwnedFd(::epoll_create1(EPOLL_CLOEXEC));
  timer_ = TRY(make_timer(1, options_.interval_ns));  // the first page comes at once
  return add(timer_.get());
}

// Once the run waits for events: what `begin` prints, and how many probes are attached, come before the screen.
Status Screen::begin() {
  has_begun_ = true;
  started_ns_ = monotonic_ns();
  const sigset_t taken = terminal_signals();
  ::sigprocmask(SIG_BLOCK, &taken, &mask_before_);
  signals_ = OwnedFd(::signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  TRY_STATUS(add(signals_.get()));
  TRY_STATUS(add(STDIN_FILENO));
  held_.hold();
  return terminal_.enter();
}

void Screen::stop() {
  if (!has_begun_ || has_stopped_) return;
  has_stopped_ = true;
  terminal_.leave();
  const sigset_t taken = terminal_signals();
  sigset_t mask;
  ::sigprocmask(SIG_BLOCK, nullptr, &mask);
  for (const int signal : {SIGWINCH, SIGTSTP, SIGCONT})
    if (sigismember(&mask_before_, signal) == 0) sigdelset(&mask, signal);
  // A signal that came meanwhile is of no use any more, and would stop the process here.
  timespec none = {};
  while (::sigtimedwait(&taken, nullptr, &none) > 0) {
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  held_.release();
}

void Screen::serve(runtime::LiveRun& run) {
  if (has_stopped_) return;
  const Status answered = catch_out_of_memory([&] { return answer(run); });
  if (answered) return;
  stop();
  log_.message("runtime_error", answered.error().message + ": --watch shows nothing from here on", "", 0, 0, 0);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, timer_.get(), nullptr);
  if (has_keys_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
}

Status Screen::answer(runtime::LiveRun& run) {
  if (!has_begun_) TRY_STATUS(begin());
  take_signals();
  take_keys();
  if (is_end_requested()) return {};
  if (take_tick(timer_.get()) && !view_.is_paused && monotonic_ns() >= next_read_ns_) take_snapshot(run);
  return draw();
}

void Screen::take_signals() {
  signalfd_siginfo taken = {};
  while (::read(signals_.get(), &taken, sizeof(taken)) == sizeof(taken)) {
    if (taken.ssi_signo == SIGTSTP) suspend();
    if (taken.ssi_signo == SIGCONT) {  // after SIGSTOP the shell may have changed everything
      terminal_.leave();
      if (!terminal_.enter()) has_keys_ = false;
    }
  }
}

// Stops the process as the signal would have done, with the terminal as it was.
void Screen::suspend() {
  terminal_.leave();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::raise(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);  // stops here until SIGCONT
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
}

void Screen::take_keys() {
  if (!has_keys_) return;
  epoll_event ready[4];
  const int count = ::epoll_wait(epoll_.get(), ready, 4, 0);
  const bool is_typed = std::any_of(ready, ready + std::max(count, 0),
                                    [](const epoll_event& event) { return event.data.fd == STDIN_FILENO; });
  if (!is_typed) return;
  char bytes[256];
  const ssize_t got = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    has_keys_ = false;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
    return;
  }
  for (const Key& key : keys_of({bytes, static_cast<size_t>(got)}))
    view_.is_typing ? take_filter_key(key) : take_key(key);
}

void Screen::take_key(const Key& key) {
  if (key.text == "q") ::raise(SIGINT);  // ends the run as Ctrl-C does
  if (key.text == "s") view_.order = next(view_.order);
  if (key.text == "/") view_.is_typing = true;
  if (key.text == " ") view_.is_paused = !view_.is_paused;
}

void Screen::take_filter_key(const Key& key) {
  constexpr size_t kMaxBytes = 200;
  switch (key.kind) {
    case Key::Kind::kText:
      if (view_.filter.size() < kMaxBytes) view_.filter += key.text;
      break;
    case Key::Kind::kBackspace:
      while (!view_.filter.empty() && (view_.filter.back() & 0xc0) == 0x80) view_.filter.pop_back();
      if (!view_.filter.empty()) view_.filter.pop_back();
      break;
    case Key::Kind::kEscape: view_.filter.clear(); [[fallthrough]];
    case Key::Kind::kEnter: view_.is_typing = false; break;
    case Key::Kind::kOther: break;
  }
}

void Screen::take_snapshot(runtime::LiveRun& run) {
  const uint64_t begin_ns = monotonic_ns();
  content_.tables = tables_.read(read_maps(run, program_), begin_ns);
  content_.losses = losses_text(run.losses());
  const uint64_t end_ns = monotonic_ns();
  const uint64_t pause_ns = (end_ns - begin_ns) * kPauseFactor;
  next_read_ns_ = pause_ns > options_.interval_ns ? end_ns + pause_ns : 0;
  content_.status = status_text();
}

std::string Screen::status_text() const {
  const uint64_t seconds = (monotonic_ns() - started_ns_) / kNsPerSecond;
  return fmt::format("{} | {} | {}:{:02}", printable_line(options_.script), clock_text(), seconds / 60, seconds % 60);
}

Status Screen::draw() {
  const Terminal::Size size = terminal_.size();
  view_.columns = size.columns;
  view_.rows = size.rows;
  content_.log = lines_.last(view_.rows);
  return terminal_.show(make_page(content_, view_));
}

}  // namespace espy::watch
