// Running another program, and a directory for what it leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy {

struct ProcessOutput {
  int status = 0;  // as a shell shows it: 128 + N if a signal N ended it
  std::string out;
  std::string err;
};

// Returns the path of the first executable file `name` in the directories of $PATH, as a shell finds it; nullopt if
// there is none. Requires a name without a slash.
std::optional<std::string> find_program(std::string_view name);

// Runs argv[0], found in PATH, with the input closed, and waits for its end. Its messages are in English. Fails with
// ENOENT where there is no such program. `scratch` is an existing directory for its output.
Result<ProcessOutput> run_process(const std::vector<std::string>& argv, const std::string& scratch);

// The names in a directory that are numbers: the processes of /proc, the threads of /proc/PID/task. None where it
// cannot be read.
std::vector<uint32_t> numbered_entries(const std::string& directory);

// A directory of our own, gone with its owner.
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
