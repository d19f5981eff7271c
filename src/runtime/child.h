// Processes that a run starts: the -c command, system(), their users; and notes to a service manager.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/result.h"

namespace espy::runtime {

// ---- Users that espy, and the command of -c, run as (--user).

struct Identity {
  std::string name;
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> groups;  // all, `group` among them
};

// Finds a user by name, or by "UID" or "UID:GID", in /etc/passwd and /etc/group: a static program cannot load the
// modules of nsswitch.conf. Fails if there is no such user, and for user 0.
Result<Identity> find_identity(std::string_view name);

// Makes this process the user's: its ids, real, effective and saved. Returns 0 or an errno value. The capabilities
// of a process of root go with it, unless PR_SET_KEEPCAPS is set.
int become(const Identity& identity);

// Clears all capabilities of this process but those in `kept`, a mask, for good: no program that it starts gains any.
// Requires that `become` has kept them. Returns 0 or an errno value.
int drop_capabilities(uint64_t kept);

// ---- The command of -c: forked early, held back until all probes are attached, then executed.

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
  // After `end`: how the program failed, as "exited with status 3" or "was killed by SIGSEGV". Empty if it has not
  // failed. A program that `end` or SIGINT has ended did not fail: Ctrl-C ends the run and the command.
  const std::string& failure() const { return failure_; }

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
  std::string failure_;
};

// Splits a command line into words at blanks; quotes ('...', "...") and backslashes work as in a shell, expansions do
// not. Fails if a quote has no end.
Result<std::vector<std::string>> split_command(const std::string& command);

// ---- Commands of the script's system().

struct ShellLimits {
  uint64_t seconds = 0;            // 0: none
  uint64_t output_bytes = 0;       // how much of the output is given
  bool ends_after_request = true;  // of the end of the run
};

struct ShellResult {
  bool was_cut = false;  // it wrote more than `output_bytes`
  // The command has ended within the limits, or not: ETIME after the seconds. ETIMEDOUT if it ran for a second after
  // the end of the run was requested, unless it was started later.
  Status status;
};

// Runs `command` by sh -c, with the environment, working directory, stdin and stderr of espy, and waits for its end and
// the end of its output. `on_output` takes what it writes to stdout, at its end and in pieces of a megabyte before. At
// a limit of time it sends the shell SIGTERM and returns without waiting for it. Fails if no shell can be started; the
// command's exit status is ignored.
Result<ShellResult> run_shell_command(const std::string& command, const ShellLimits& limits,
                                      const std::function<void(std::string_view)>& on_output);

// ---- Notifications to a service manager, the protocol of sd_notify(3): a datagram to $NOTIFY_SOCKET.

// `state`: lines of NAME=VALUE, as "READY=1". Does nothing if $NOTIFY_SOCKET is not set; ignores failures.
// Waits for a second for a manager that does not read.
void notify_manager(std::string_view state);

}  // namespace espy::runtime
