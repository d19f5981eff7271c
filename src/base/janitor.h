// A process that cleans up after this one, however it ends, also by SIGKILL.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"

namespace espy {

// Blocks all signals, for a child that has to clean up: those of a terminal come to all of its processes.
void block_all_signals();

// In a child: waits, in a session of its own, for the end of its parent, however it ends. SIGKILL ends the wait, and
// the process. Requires that all signals are blocked.
void wait_for_death_of(pid_t parent);

class Janitor {
 public:
  // Forks a process that makes something by `make`, then waits for the end of this process and calls `clean`. Since the
  // process that makes it is the one that cleans, there is no moment at which SIGKILL here would leave it.
  // Returns with what `make` returned, which is `made()`, or its error.
  static Result<Janitor> start(const std::function<Result<std::string>()>& make,
                               const std::function<void(const std::string& made)>& clean);

  Janitor(Janitor&& other) noexcept : pid_(std::exchange(other.pid_, 0)), made_(std::exchange(other.made_, {})) {}
  Janitor& operator=(Janitor&&) = delete;
  // Ends the process; `clean` is not called. What was made has to be gone.
  ~Janitor();

  // The process stays, and calls `clean` after the end of this one.
  void outlive() { pid_ = 0; }

  const std::string& made() const { return made_; }  // empty after a move

 private:
  Janitor(pid_t pid, std::string made) : pid_(pid), made_(std::move(made)) {}

  pid_t pid_;  // 0 after a move and after outlive()
  std::string made_;
};

}  // namespace espy
