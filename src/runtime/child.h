// The command of -c: started, held back until everything is attached, then let go.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace espy::runtime {

class Child {
 public:
  // Forks; the child waits. `command` is split into words as a shell does with quotes and backslashes, without
  // expansions; the program is looked up in $PATH. Fails before forking where it cannot be found.
  static Result<Child> start(const std::string& command);

  Child(Child&&) noexcept = default;
  Child& operator=(Child&&) noexcept = default;
  // A child that was never let go is killed; one that runs is sent SIGTERM. Both are reaped.
  ~Child();

  uint32_t pid() const { return static_cast<uint32_t>(pid_.value); }
  Status let_go();  // the error says why exec failed

 private:
  struct Pid {  // moves leave 0 behind
    pid_t value = 0;
    Pid() = default;
    explicit Pid(pid_t pid) : value(pid) {}
    Pid(Pid&& other) noexcept : value(std::exchange(other.value, 0)) {}
    Pid& operator=(Pid&& other) noexcept {
      std::swap(value, other.value);
      return *this;
    }
  };
  Child(pid_t pid, OwnedFd gate, OwnedFd verdict) : pid_(pid), gate_(std::move(gate)), verdict_(std::move(verdict)) {}

  Pid pid_;
  OwnedFd gate_;     // closing it without a byte ends the child
  OwnedFd verdict_;  // exec's errno comes back here
};

// Words of a command line: blanks separate, '...' and "..." and \x keep.
std::vector<std::string> split_command(const std::string& command);

}  // namespace espy::runtime
