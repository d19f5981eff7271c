// An owned file descriptor, and reading and writing of files.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace espy {

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

// Returns the first bytes of a file of any kind, up to `max_bytes`. Does not wait: from a pipe, a terminal and the
// like, takes what is there.
Result<std::string> read_start_of_file(const std::string& path, size_t max_bytes);

// Writes all of `bytes`; waits where a reader is slow, also for a non-blocking descriptor. Once the end of the run is
// requested (base/end_request.h), fails with ETIMEDOUT if not a byte could be written for a second.
Status write_all(int fd, std::string_view bytes);

}  // namespace espy
