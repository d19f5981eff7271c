// What becomes of the files that a run probes. The kernel probes files, not paths: where a path leads to another file
// during the run, as after the upgrade of a package, nothing of the new file is seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_state.h"
#include "program/program.h"

namespace espy::runtime {

class ProbedFiles {
 public:
  // `program` must outlive this.
  explicit ProbedFiles(const program::Program& program) : program_(program) {}

  // Looks at each path that has not been found to be changed. Paths that lead nowhere any more are no news: there is
  // no code that would not be seen. Takes about 1 µs for each.
  void look();
  // The same, at most once in ten seconds.
  void look_sometimes();
  // A sentence for each file that was replaced or written to.
  const std::vector<std::string>& changes() const { return changes_; }

 private:
  struct File {
    std::string path;
    FileState state;
  };
  void list_files();

  const program::Program& program_;
  bool has_list_ = false;
  std::vector<File> unchanged_;
  std::vector<std::string> changes_;
  uint64_t next_look_ns_ = 0;
};

}  // namespace espy::runtime
