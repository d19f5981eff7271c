// Files in a compressed archive: tar (POSIX.1-1988, ustar) in gzip, as `tar -xzf` reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace espy::kernel {

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

// Writes the files of an archive below `directory`, which is empty. The archive may be anybody's: fails if it has
// anything but regular files with plain relative paths, more than `limit_bytes` in all or more than 100,000 files, or
// if it ends early.
Status unpack_tar(const std::string& path, const std::string& directory, uint64_t limit_bytes);

}  // namespace espy::kernel
