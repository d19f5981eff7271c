#include "runtime/run_control.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>

#include "base/end_request.h"
#include "base/fatal.h"

namespace espy::runtime {

void RunControl::request_exit(int status) {
  if (is_exit_requested_) return;
  is_exit_requested_ = true;
  exit_status_ = status;
}

bool RunControl::has_exit_flag() const { return load(program_.exit_flag_offset) != 0; }

int RunControl::exit_status() const {
  return is_exit_requested_ ? exit_status_ : static_cast<int>(load(program_.exit_status_offset));
}

void RunControl::stop_programs() { store(program_.exit_flag_offset, program::kEndedByUserSpace); }

void RunControl::reset() {
  is_exit_requested_ = false;
  exit_status_ = 0;
  store(program_.exit_flag_offset, 0);
  store(program_.exit_status_offset, 0);
}

void RunControl::start_clock() { store(program_.start_offset, machine_.now_ns()); }

uint64_t RunControl::load(uint32_t offset_bytes) const {
  const auto globals = machine_.memory(program_.globals);
  uint64_t value = 0;
  if (!globals.empty()) std::memcpy(&value, globals.data() + offset_bytes, sizeof(value));
  return value;
}

void RunControl::store(uint32_t offset_bytes, uint64_t value) {
  const auto globals = machine_.memory(program_.globals);
  if (!globals.empty()) std::memcpy(globals.data() + offset_bytes, &value, sizeof(value));
}

namespace {

constexpr const char* kCannotWait = "cannot wait for events";

}  // namespace

Result<EventLoop> EventLoop::create() {
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno(kCannotWait, errno);
  return EventLoop(std::move(epoll));
}

Status EventLoop::watch(int fd, Handler on_readable) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno(kCannotWait, errno);
  handlers_[fd] = std::move(on_readable);
  return {};
}

void EventLoop::unwatch(int fd) {
  if (handlers_.erase(fd) > 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Status EventLoop::wait(int timeout_ms) {
  epoll_event event = {};
  const int count = ::epoll_wait(epoll_.get(), &event, 1, timeout_ms);
  if (count < 0 && errno != EINTR) return fail_errno(kCannotWait, errno);
  if (count <= 0) return {};
  const auto found = handlers_.find(event.data.fd);
  if (found == handlers_.end()) return {};
  const Handler handler = found->second;  // a copy: it may unwatch itself
  return handler();
}

namespace {

constexpr uint64_t kGraceNs = 300'000'000;
constexpr int kTickUs = 100'000;

// What the handlers write; lock-free, as they require.
std::atomic<int> event_fd = -1;
std::atomic<int> ending_signal = 0;
std::atomic<bool> has_user_signal = false;
std::atomic<bool> has_hangup = false;

// Signals of a write that fails: its error says enough.
constexpr int kWriteSignals[] = {SIGPIPE, SIGXFSZ};
sigset_t write_signals_before;  // those that were not ignored before `Signals`
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = ::write(event_fd, &one, sizeof(one));
}

void set_timer(int interval_us) {
  itimerval timer = {};
  timer.it_interval.tv_usec = timer.it_value.tv_usec = interval_us;
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void on_user_signal(int) {
  const int saved = errno;
  has_user_signal = true;
  wake();
  errno = saved;
}

void on_hangup(int) {
  const int saved = errno;
  has_hangup = true;
  wake();
  errno = saved;
}

void on_ending_signal(int signal) {
  const int saved = errno;
  if (!is_end_requested()) {
    ending_signal = signal;
    request_end();
    set_timer(kTickUs);
    wake();
  }
  errno = saved;
}

// Restoring the default, rather than exiting from the handler, ends also a process that waits in the kernel where only
// a deadly signal wakes it.
void on_tick(int) {
  if (ns_since_end_request() < kGraceNs) return;
  const int saved = errno;
  for (const int signal : kEndingSignals) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == on_ending_signal) ::signal(signal, SIG_DFL);
  }
  errno = saved;
}

bool is_ignored(int signal) {
  struct sigaction action = {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals(bool takes_user_signal, bool takes_hangup) : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  reset_end_request();
  event_fd = fd_.get();
  ending_signal = 0;
  has_user_signal = false;
  has_hangup = false;
  for (const int signal : kEndingSignals) {
    if (signal == SIGHUP && takes_hangup) continue;
    if (signal == SIGINT || signal == SIGQUIT || !is_ignored(signal)) handle(signal, on_ending_signal, 0);
  }
  if (takes_hangup) handle(SIGHUP, on_hangup, SA_RESTART);
  if (takes_user_signal) handle(SIGUSR1, on_user_signal, SA_RESTART);
  handle(SIGALRM, on_tick, 0);
  sigemptyset(&write_signals_before);
  for (const int signal : kWriteSignals) {
    if (!is_ignored(signal)) sigaddset(&write_signals_before, signal);
    handle(signal, SIG_IGN, 0);
  }
  sigset_t taken;
  sigemptyset(&taken);
  for (size_t i = 0; i < taken_count_; ++i) sigaddset(&taken, before_[i].signal);
  ::sigprocmask(SIG_UNBLOCK, &taken, &mask_before_);
}

void Signals::handle(int signal, void (*handler)(int), int flags) {
  CHECK(taken_count_ < kMaxTaken);
  Before& before = before_[taken_count_++];
  before.signal = signal;
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(signal, &action, &before.action);
}

// After an ending signal, those of the grace period are still to be ignored.
Signals::~Signals() {
  event_fd = -1;
  const bool is_ending = is_end_requested();
  for (const Before& before : std::span(before_, taken_count_))
    if (!is_ending || std::ranges::find(kWriteSignals, before.signal) != std::end(kWriteSignals))
      ::sigaction(before.signal, &before.action, nullptr);
  if (!is_ending) ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

int Signals::take() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof(count));
  if (!has_user_signal.exchange(false)) return ending_signal.exchange(0);
  if (ending_signal != 0) wake();
  return SIGUSR1;
}

bool Signals::take_hangup() { return has_hangup && has_hangup.exchange(false); }

sigset_t default_signals_of_children() { return write_signals_before; }

void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace espy::runtime
