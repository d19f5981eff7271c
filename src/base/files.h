// Files: owned descriptors, reading and writing, identity, output files, and the mounts of a process.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace espy {

// ---- An owned file descriptor, and reading and writing of files.

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Whether the path leads to a regular file.
bool is_file(const std::string& path);

// Returns the content of a file, also of one in procfs or sysfs, where files have size 0.
Result<std::string> read_file(const std::string& path);

// Returns the first bytes of a file of any kind, up to `max_bytes`. Does not wait: takes the available bytes of a pipe,
// a terminal and the like.
Result<std::string> read_start_of_file(const std::string& path, size_t max_bytes);

// Writes all of `bytes`; waits where a reader is slow, also for a non-blocking descriptor. Once the end of the run is
// requested (base/end_request.h), fails with ETIMEDOUT if not a byte could be written for a second.
Status write_all(int fd, std::string_view bytes);

// ---- The identity of a file, and its state at a time.

// Equal for two paths of one file, different after the file was written to or replaced.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  uint64_t modified_ns = 0;  // since 1970
  auto operator<=>(const FileIdentity&) const = default;
};

// The same, with the time of the last change (st_ctim), which no user can set. So espy also notices a file whose
// modification time was set back, and a new file with the inode number of a deleted file. A new mode, owner or name
// changes this time, too. Kernels before Linux 6.13 count it in ticks of up to 10 ms.
struct FileState {
  FileIdentity identity;
  uint64_t changed_ns = 0;  // since 1970
  auto operator<=>(const FileState&) const = default;
  bool is_known() const { return *this != FileState(); }
};

// What became of a file, as a clause about it: "was replaced" by another file, "was written to", or "was changed" in
// its mode, owner or names.
std::string_view what_became_of(const FileState& before, const FileState& now);

// ---- Reading an open file or pipe to its end.

// Returns all bytes up to the end; stops once it has more than `limit_bytes`. `name` is for the error.
Result<std::string> read_to_end(int fd, const std::string& name, uint64_t limit_bytes = UINT64_MAX);

// ---- Files to write to that the user has named, in directories that may belong to others.

// Opens the file as open(2) does, with O_CLOEXEC. A symbolic link that another user has put at its end is not followed:
// it could lead to any file that root may write. Links of root and of espy's user are, /dev/stdout among them. The
// error names the path.
Result<OwnedFd> open_output(const std::string& path, int flags, mode_t mode);

// ---- The mounts of a mount namespace: the lines of /proc/PID/mountinfo (proc_pid_mountinfo(5)).

// The texts are views into the line.
struct Mount {
  uint64_t id = 0;
  uint64_t device = 0;     // as makedev(3) packs it
  std::string_view place;  // where it is mounted, with escapes
  std::string_view type;   // of the file system: "overlay"
};

// Parses "ID PARENT MAJOR:MINOR ROOT PLACE OPTIONS [TAGS] - TYPE SOURCE OPTIONS". Returns nullopt for another form.
std::optional<Mount> parse_mount(std::string_view line);

}  // namespace espy
