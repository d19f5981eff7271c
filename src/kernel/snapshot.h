// A snapshot: what espy asks of a kernel, in one file, so that scripts can be checked for it on another machine.
//
// It is an archive (kernel/tar.h) with the files of a recorded kernel (tests/kernels/README.md), whole: BTF of the
// kernel and its modules, tracepoint formats, functions, features, and the configuration and version for people who
// read it. It has nothing of users or processes. Addresses are numbered, and tell nothing of the machine's.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/process.h"
#include "base/result.h"
#include "kernel/kernel.h"

namespace espy::kernel {

// Writes a snapshot of the running kernel to a descriptor. `kernel` tells the features, which takes the rights to load
// programs.
Status write_snapshot(Kernel& kernel, int fd);

// A snapshot, or a directory with a recorded kernel, opened for reading.
class Snapshot {
 public:
  // Unpacks a file to a temporary directory.
  static Result<Snapshot> of(const std::string& path);
  // The release, such as "6.12.94-amd64", or the name of the directory.
  const std::string& name() const { return name_; }
  Result<std::unique_ptr<Kernel>> kernel() const { return open_recorded_kernel(directory_); }

 private:
  Snapshot() = default;

  std::optional<ScratchDirectory> unpacked_;
  std::string directory_;
  std::string name_;
};

}  // namespace espy::kernel
