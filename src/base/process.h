// Child processes: starting and ending them, running other programs, cleaning up after this process however it ends,
// and what children inherit.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace espy {

// ---- Child processes that run a function of espy.

struct ChildOptions {
  bool shares_descriptors = false;  // with this process: what one closes is closed for both (CLONE_FILES, clone(2))
  int parent_end_signal = 0;        // which the child gets when this process ends; 0: none
  std::string_view failure = "cannot start a process";  // the error's text if it cannot start
};

// Starts a child that calls `body` and ends by _exit(2) with the status that `body` returns: it neither flushes streams
// nor calls destructors of globals. Returns its process id.
Result<pid_t> start_child(const std::function<int()>& body, const ChildOptions& options = {});

// The same for a process that nothing waits for: it is a child of init(1).
Status start_orphan(const std::function<int()>& body);

// Waits until a child has ended. Returns its status as waitpid(2); nullopt if there is no such child.
std::optional<int> wait_for_child(pid_t child);

// Returns whether a child has ended, or does not exist. Takes its status, which removes the zombie, and stores it in
// `status` as waitpid(2).
bool has_child_ended(pid_t child, int* status = nullptr);

// Ends a child by SIGKILL, and waits for its end. Does nothing if espy may not kill it, because it has another user
// now.
void end_child(pid_t child);

// ---- A process that cleans up after this one, however it ends, also by SIGKILL.

// Blocks all signals, for a child that has to clean up, because signals of a terminal reach all of its processes.
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
  // Ends the process; `clean` is not called. Created things have to be gone.
  ~Janitor();

  // The process stays, and calls `clean` after the end of this one.
  void outlive() { pid_ = 0; }

  const std::string& made() const { return made_; }  // empty after a move

 private:
  Janitor(pid_t pid, std::string made) : pid_(pid), made_(std::move(made)) {}

  pid_t pid_;  // 0 after a move and after outlive()
  std::string made_;
};

// ---- Limits that this process raises for itself: the programs that it starts get the original limits.

// Raises a limit of getrlimit(2) to `least`, if it is lower. Returns false if that is not allowed; then it is raised as
// far as it may be.
bool raise_limit(int resource, rlim_t least);

// Between fork and exec: sets back the limits that were raised.
void restore_limits();

// While it lives, the soft limits are those before, for posix_spawn(3). The hard ones stay: who has given up his rights
// could not raise them again.
class RestoredLimits {
 public:
  RestoredLimits();
  ~RestoredLimits();
  RestoredLimits(const RestoredLimits&) = delete;
  RestoredLimits& operator=(const RestoredLimits&) = delete;
};

// ---- Runs other programs, with a temporary directory for their output.

struct ProcessOutput {
  int status = 0;  // as in a shell: 128 + N after signal N
  std::string out;
  std::string err;
};

// Returns the path of the first executable file `name` in the directories of $PATH, as a shell finds it; nullopt if
// there is none. Requires a name without a slash.
std::optional<std::string> find_program(std::string_view name);

struct ProcessLimits {
  uint64_t seconds = 0;       // 0: none
  uint64_t file_bytes = 0;    // of each file that it writes, its output too; 0: none
  uint64_t memory_bytes = 0;  // of address space, of each process; 0: none
};

// Runs argv[0], searched in $PATH, with /dev/null as stdin and LC_ALL=C, in a process group of its own, and waits for
// it. Fails with ENOENT if there is no such program, with ETIME if it runs longer than the limit: the group is killed
// then. A signal that would end this process meanwhile ends the group, too.
// `scratch` is an existing directory for the output, and for temporary files ($TMPDIR).
Result<ProcessOutput> run_process(const std::vector<std::string>& argv, const std::string& scratch,
                                  const ProcessLimits& limits = {});

// Returns the entries of a directory that are numbers: the processes in /proc, the threads in /proc/PID/task. Empty if
// it cannot be read.
std::vector<uint32_t> numbered_entries(const std::string& directory);

// A temporary directory, removed by the destructor, or at the end of the process, however it ends.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> make();  // in $TMPDIR or /tmp
  ScratchDirectory(ScratchDirectory&& other) noexcept = default;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  const std::string& path() const { return janitor_.made(); }

 private:
  explicit ScratchDirectory(Janitor janitor) : janitor_(std::move(janitor)) {}
  Janitor janitor_;
};

// ---- ExecReport: a forked child reports to its parent that it could not execute a program.

// A pipe whose writing end closes when the child executes its program.
class ExecReport {
 public:
  // To be called before the fork.
  static Result<ExecReport> make();

  // In the child: reports the errno of exec(3). Returns the exit status of a program that could not be executed, 127.
  int fail_with(int code);
  // In the parent: to be called after the fork, before `wait`.
  void close_writing_end() { writing_.reset(); }
  // In the parent: waits until the child has executed its program, or ended. Returns the errno that it reported; 0 if
  // none; nullopt if `is_over` became true before.
  std::optional<int> wait(bool (*is_over)());

 private:
  ExecReport(int reading, int writing) : reading_(reading), writing_(writing) {}

  OwnedFd reading_;
  OwnedFd writing_;
};

}  // namespace espy
