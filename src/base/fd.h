// A file descriptor that is closed when its owner goes.
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

// Whether the path leads to a file, not to a directory or a device.
bool is_file(const std::string& path);

// The whole content of a file, also of one in /proc or /sys whose size reads as 0.
Result<std::string> read_file(const std::string& path);

// Writes all of `bytes`, through short writes and EINTR.
Status write_all(int fd, std::string_view bytes);

}  // namespace espy
