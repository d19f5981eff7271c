#include "symbols/spare_time.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/fatal.h"

#ifndef sigev_notify_thread_id  // glibc names it since 2.38 only
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace espy::symbols {

namespace {

thread_local std::atomic<void (*)()> ring_now = nullptr;

void on_alarm(int) {
  if (const auto ring = ring_now.load()) ring();
}

// SA_NODEFER: after longjmp(3) the signal must not stay blocked.
bool handle_alarm() {
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_NODEFER | SA_RESTART;
  return ::sigaction(SIGVTALRM, &action, nullptr) == 0;
}

sigset_t all_but_alarm() {
  sigset_t out;
  sigfillset(&out);
  for (const int taken : {SIGVTALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&out, taken);
  return out;
}

}  // namespace

CpuAlarm::CpuAlarm(std::chrono::nanoseconds after, void (*ring)()) {
  static const bool is_handled = handle_alarm();
  static const sigset_t kOthers = all_but_alarm();
  CHECK(ring_now.load() == nullptr);
  ::pthread_sigmask(SIG_SETMASK, &kOthers, &mask_before_);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGVTALRM;
  event.sigev_notify_thread_id = ::gettid();
  if (!is_handled || ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(after);
  itimerspec when = {};
  when.it_value.tv_sec = seconds.count();
  when.it_value.tv_nsec = (after - seconds).count();
  ring_now = ring;
  is_set_ = ::timer_settime(timer_, 0, &when, nullptr) == 0;
  if (!is_set_) ::timer_delete(timer_);
}

CpuAlarm::~CpuAlarm() {
  ring_now = nullptr;
  if (is_set_) ::timer_delete(timer_);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

namespace {

// Reading all of the debug information of a program takes 5 to 6 ns for each byte of its file (measured: C, C++), and
// up to four times as much if it is compressed. Slow machines take several times as long.
constexpr TimeBudget::Duration kPerByte(64);
constexpr TimeBudget::Duration kPerFile = std::chrono::milliseconds(2);

TimeBudget::Duration explained_by(uint64_t disk_bytes) {
  return kPerFile + kPerByte * static_cast<int64_t>(std::min<uint64_t>(disk_bytes, uint64_t{1} << 40));
}

}  // namespace

DebugTime::Duration DebugTime::left(uint64_t disk_bytes, Moment now) const {
  const Duration most = explained_by(disk_bytes) - taken_ + from_spare_ + spare_.budget.left(now);
  return is_at_end_() ? std::min(most, spare_.left_at_end) : most;
}

void DebugTime::take(Duration time, uint64_t disk_bytes, Moment now) {
  if (is_at_end_()) spare_.left_at_end -= time;
  taken_ += time;
  const Duration more = taken_ - explained_by(disk_bytes) - from_spare_;
  if (more <= Duration::zero()) return;
  from_spare_ += more;
  spare_.budget.take(more, now);
}

}  // namespace espy::symbols
