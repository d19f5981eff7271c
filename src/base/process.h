// Runs other programs, with a temporary directory for their output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/janitor.h"
#include "base/result.h"

namespace espy {

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

}  // namespace espy
