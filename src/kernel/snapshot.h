// A snapshot: what espy asks of a kernel, in one file, so that scripts can be checked for it on another machine.
//
// It is an archive (kernel/tar.h) with the files of a recorded kernel (tests/kernels/README.md), whole: BTF of the
// kernel and its modules, tracepoint formats, functions, features, and the configuration and version for people who
// read it. It has nothing of users or processes. Addresses are numbered, and tell nothing of the machine's.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "kernel/kernel.h"

namespace espy::kernel {

// Writes a snapshot of the running kernel to a descriptor. `kernel` tells the features, which takes the rights to load
// programs.
Status write_snapshot(Kernel& kernel, int fd);

// A snapshot, or a directory with a recorded kernel, opened for reading.
class Snapshot {
 public:
  // Unpacks the file to a directory for temporary files, which is removed with the object.
  static Result<Snapshot> of(const std::string& path);
  Snapshot(Snapshot&& other) noexcept;
  Snapshot& operator=(Snapshot&&) = delete;
  ~Snapshot();

  // The release, such as "6.12.94-amd64", or the name of the directory.
  const std::string& name() const { return name_; }
  Result<std::unique_ptr<Kernel>> kernel() const { return open_recorded_kernel(directory_); }

 private:
  Snapshot(std::string directory, bool is_temporary) : directory_(std::move(directory)), is_temporary_(is_temporary) {}

  std::string directory_;
  std::string name_;
  bool is_temporary_;
};

}  // namespace espy::kernel
