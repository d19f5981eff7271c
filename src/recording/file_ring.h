// FileRing: a recording in a ring of files, NAME.000001, NAME.000002 and so on, of which the oldest are deleted.
//
// Each file is a recording of its own. Numbers only grow, so that no file is ever renamed or written again, and a
// recorder that is killed leaves all of them as they are. Only files that this object has created are deleted.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "recording/recording.h"
#include "recording/writer.h"

namespace espy::recording {

struct RingLimits {
  uint64_t file_bytes = 0;  // a file ends before it is larger, unless a single block is; 0: no limit
  uint64_t file_count = 0;  // files that are kept; 0: all
  uint64_t age_ns = 0;      // files whose latest event is older are deleted; 0: none

  bool has_any() const { return file_bytes > 0 || age_ns > 0; }
};

class FileRing {
 public:
  // `name` is a path that leads to nothing. Numbers continue behind those of the files that are there.
  static Result<FileRing> make(const std::string& name, const RingLimits& limits, const Description& description);

  // Returns the writer of the first file.
  Result<Writer> begin();
  // Turns to the next file, if it is time to, and deletes what is too old. Call it when a block was written, and now
  // and then. `now_ns`: CLOCK_BOOTTIME.
  Status turn(Writer& writer, uint64_t now_ns);

  // The oldest and the newest file that were kept.
  const std::string& first_path() const { return files_.front().path; }
  const std::string& last_path() const { return files_.back().path; }

 private:
  // A file of this run; the device and the inode tell it from another one of its name.
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    uint64_t last_ns = 0;  // its latest event
  };

  explicit FileRing(const Description& description) : description_(description) {}
  bool is_over(const Writer& writer, uint64_t now_ns) const;
  Result<OwnedFd> create_next();
  Status delete_oldest();

  Description description_;  // that of the file that is being written
  RingLimits limits_;
  std::string name_;  // the path without a number
  OwnedFd directory_;
  std::deque<File> files_;  // the last one is being written
};

// A file of a ring that is there.
struct RingFile {
  uint64_t number = 0;
  std::string path;
};

// The files of that name with a number, by number.
std::vector<RingFile> find_ring_files(const std::string& name);

}  // namespace espy::recording
