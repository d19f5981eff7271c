// Kernels in files: archives, recorded kernels, and the snapshots of `espy snapshot`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/process.h"
#include "base/result.h"
#include "kernel/kernel.h"

namespace espy::kernel {

// ---- Files in a compressed archive: tar (POSIX.1-1988, ustar) in gzip, as `tar -xzf` reads it.

class TarWriter {
 public:
  // Writes to a copy of the descriptor.
  static Result<TarWriter> create(int fd);
  TarWriter(TarWriter&& other) noexcept;
  TarWriter& operator=(TarWriter&&) = delete;
  ~TarWriter();

  // `path`: relative, at most 255 bytes of which the last component has at most 100.
  Status add(std::string_view path, std::string_view content);
  Status finish();

 private:
  explicit TarWriter(void* stream) : stream_(stream) {}
  Status write(std::string_view bytes);

  void* stream_;  // gzFile
};

// Writes the files of an archive below `directory`, which is empty. Anybody may have made the archive. Fails if it has
// other entries than regular files with plain relative paths, more than `limit_bytes` in all or more than 100,000
// files, or if it ends early.
Status unpack_tar(const std::string& path, const std::string& directory, uint64_t limit_bytes);

// ---- The files of recorded kernels and of snapshots: see tests/kernels/README.md. Internal to kernel/.
//
// A snapshot is unpacked to a temporary directory, not to memory: recorded kernels are directories, so one reader
// serves both, and it reads only the files that a script needs.

// All others are absent.
struct RecordedFeatures {
  std::set<Feature> present, unknown;
};

// Reads a file `features`. The list in a snapshot may be from an earlier or later espy. Features that it does not list
// are unknown, unless it says that they are absent. Unknown names are skipped.
Result<RecordedFeatures> read_recorded_features(const std::string& path, bool is_snapshot);

// As open_recorded_kernel(), for the files of a snapshot.
Result<std::unique_ptr<Kernel>> open_snapshot(const std::string& directory, const std::function<bool(Feature)>& assume);

// ---- A snapshot: what espy asks of a kernel, in one file, so that scripts can be checked for it on another machine.
//
// It is an archive (kernel/snapshot.h) with the files of a recorded kernel (tests/kernels/README.md), whole: BTF of the
// kernel and its modules, tracepoint formats, functions, features, configuration and version. What the process that
// takes it may not read is marked as unknown. It has nothing of users or processes. Addresses are numbered, and show
// nothing of the machine. The file `format` in it has the number of the format and the first release of espy that reads
// it: "1 1.0.0". Snapshots of before have none.

// The rights of this process to try features: none, those to load programs, or of all.
enum class Trial : uint8_t { kNone, kPrograms, kAll };

// Writes a snapshot of the running kernel to a descriptor. Features that this process may not try are unknown. Returns
// the unknown facts with the reasons, a line each.
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
