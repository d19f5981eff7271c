// Runs other programs, with a temporary directory for their output.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Runs argv[0], searched in $PATH, with /dev/null as stdin and LC_ALL=C, and waits for it. Fails with ENOENT if there
// is no such program. `scratch` is an existing directory for its output.
Result<ProcessOutput> run_process(const std::vector<std::string>& argv, const std::string& scratch);

// Returns the entries of a directory that are numbers: the processes in /proc, the threads in /proc/PID/task. Empty if
// it cannot be read.
std::vector<uint32_t> numbered_entries(const std::string& directory);

// A temporary directory, removed by the destructor.
class ScratchDirectory {
 public:
  static Result<ScratchDirectory> make();  // in $TMPDIR or /tmp
  ScratchDirectory(ScratchDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace espy
