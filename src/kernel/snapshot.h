// A snapshot: what espy asks of a kernel, in one file, so that scripts can be checked for it on another machine.
//
// It is an archive (kernel/tar.h) with the files of a recorded kernel (tests/kernels/README.md), whole: BTF of the
// kernel and its modules, tracepoint formats, functions, features, and the configuration and version for people who
// read it. What the process that takes it may not read is marked as unknown. It has nothing of users or processes.
// Addresses are numbered, and tell nothing of the machine's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "kernel/kernel.h"

namespace espy::kernel {

// The rights of this process to try features: none, those to load programs, or of all.
enum class Trial : uint8_t { kNone, kPrograms, kAll };

// Writes a snapshot of the running kernel to a descriptor. Features that this process may not try are unknown. Returns
// what is unknown, and why, a line each.
Result<std::vector<std::string>> write_snapshot(Kernel& kernel, int fd, Trial trial);

// A snapshot, or a directory with a recorded kernel, opened for reading.
class Snapshot {
 public:
  // Unpacks a file to a temporary directory.
  static Result<Snapshot> of(const std::string& path);
  // The release, such as "6.12.94-amd64", or the name of the directory.
  const std::string& name() const { return name_; }
  // The features that the kernel may have or lack.
  Result<std::vector<Feature>> unknown_features() const;
  // `assume`: see open_recorded_kernel().
  Result<std::unique_ptr<Kernel>> kernel(const std::function<bool(Feature)>& assume = {}) const;

 private:
  Snapshot() = default;
  bool is_file() const { return unpacked_.has_value(); }

  std::optional<ScratchDirectory> unpacked_;
  std::string directory_;
  std::string name_;
};

}  // namespace espy::kernel
