#include "base/janitor.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/fd.h"
#include "base/read_to_end.h"

namespace espy {

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);
}

void wait_for_death_of(pid_t parent) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
  sigset_t death;
  sigemptyset(&death);
  sigaddset(&death, SIGUSR2);
  timespec once_a_second = {1, 0};
  while (::getppid() == parent) ::sigtimedwait(&death, nullptr, &once_a_second);
}

namespace {

// The reply of the process: an errno, or 0; then what was made, or the error's message.
std::string encode(const Result<std::string>& result) {
  const int code = result ? 0 : std::max(result.error().code, 1);
  std::string reply(reinterpret_cast<const char*>(&code), sizeof(code));
  return reply + (result ? *result : result.error().message);
}

Result<std::string> decode(const std::string& reply) {
  int code = 0;
  if (reply.size() < sizeof(code)) return fail("a process that has to clean up has ended");
  std::memcpy(&code, reply.data(), sizeof(code));
  std::string text = reply.substr(sizeof(code));
  if (code != 0) return fail(std::move(text), code);
  return text;
}

// Signals are blocked before anything is made. No descriptor stays open, as the other end of a pipe would wait for it.
[[noreturn]] void make_and_clean(pid_t parent, int reply, const std::function<Result<std::string>()>& make,
                                 const std::function<void(const std::string&)>& clean) {
  block_all_signals();
  const Result<std::string> made = make();
  const bool is_reported = write_all(reply, encode(made)).has_value();
  ::syscall(SYS_close_range, 0U, ~0U, 0U);
  if (!made) ::_exit(1);
  if (is_reported) wait_for_death_of(parent);
  clean(*made);
  ::_exit(0);
}

}  // namespace

Result<Janitor> Janitor::start(const std::function<Result<std::string>()>& make,
                               const std::function<void(const std::string& made)>& clean) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const OwnedFd reply(ends[0]);
  OwnedFd its_end(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("cannot start a process", errno);
  if (pid == 0) make_and_clean(parent, its_end.get(), make, clean);
  its_end.reset();
  Result<std::string> made = decode(read_to_end(reply.get(), "the reply").value_or(""));
  Janitor janitor(pid, made ? *made : std::string());  // ends the process if there is an error
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  return janitor;
}

Janitor::~Janitor() {
  if (pid_ == 0) return;
  if (::kill(pid_, SIGKILL) != 0) return;  // espy is no longer its user (--user): it cleans after the end
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace espy
