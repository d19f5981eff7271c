// The command of -c: forked early, held back until all probes are attached, then executed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/exec_report.h"
#include "base/fd.h"
#include "runtime/identity.h"

namespace espy::runtime {

class Child {
 public:
  // Forks a child that waits for `let_go`. `command` is split by split_command; the program is looked up in $PATH.
  // Fails before forking if it is not found.
  // `user`: whom the program runs as; nullptr: the caller's.
  static Result<Child> start(const std::string& command, const Identity* user = nullptr);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) noexcept = default;
  ~Child() { static_cast<void>(end()); }

  uint32_t pid() const { return static_cast<uint32_t>(pid_.value); }
  // Waits until the child does, a second at most: what it calls before that is not the program's, and no probe that is
  // attached later sees it.
  void wait_until_ready() const;
  // Starts the program. Fails if exec(3) does, or if it has not been executed when the end of the run is requested.
  Status let_go();
  // Ends a child that was not let go; sends SIGTERM to one that runs, and waits for its end, a second at most. Fails
  // with ETIMEDOUT if it runs on. Later calls have no effect.
  Status end();

 private:
  struct Pid {  // 0 after a move
    pid_t value = 0;
    Pid() = default;
    explicit Pid(pid_t pid) : value(pid) {}
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, 0)) {}
    Pid& operator=(Pid&& other) noexcept {
      std::swap(value, other.value);
      return *this;
    }
  };
  Child(pid_t pid, OwnedFd gate, ExecReport report) : pid_(pid), gate_(std::move(gate)), report_(std::move(report)) {}

  Pid pid_;
  OwnedFd gate_;  // a byte starts the program; closed without one, the child exits
  ExecReport report_;
  bool has_begun_ = false;  // the program
};

// Splits a command line into words at blanks; quotes ('...', "...") and backslashes work as in a shell, expansions do
// not. Fails if a quote has no end.
Result<std::vector<std::string>> split_command(const std::string& command);

}  // namespace espy::runtime
