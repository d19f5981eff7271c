// Libraries within ZIP archives, as the loader of Android maps them from packages: "app.apk!/lib/x86_64/libfoo.so".
//
// Only files stored without compression can be mapped, and so have code at an offset of the archive. Format: PKWARE
// APPNOTE.TXT, 4.3. ZIP64 archives (above 4 GiB) are not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_state.h"
#include "base/result.h"

namespace espy::symbols {

struct ArchivePath {
  std::string archive;
  std::string name;  // within it
};
// Splits a path at the "!/" after an archive; nullopt without one. "dir!/file" is a plain path if the directory `dir!`
// exists.
std::optional<ArchivePath> split_archive_path(std::string_view path);

struct StoredFile {
  std::string name;
  uint64_t offset = 0;  // of its first byte in the archive
  uint64_t size = 0;    // bytes
};
Result<StoredFile> find_stored_file(const std::string& archive, std::string_view name);
// The files of an archive that are stored without compression, by where they are.
class StoredFiles {
 public:
  static Result<StoredFiles> read(const std::string& archive);

  // Returns the file that contains the byte at `offset`. `archive` leads to the file that was opened.
  Result<StoredFile> at(const std::string& archive, uint64_t offset) const;
  uint64_t directory_bytes() const { return directory_bytes_; }  // that were read of the archive
  uint64_t memory_bytes() const { return places_.capacity() * sizeof(Place); }

 private:
  struct Place {
    uint32_t header_offset = 0;
    uint32_t size = 0;  // bytes
    uint32_t name_offset = 0;
    uint32_t name_bytes = 0;
  };
  std::vector<Place> places_;  // sorted by header_offset
  uint64_t directory_bytes_ = 0;
};

struct StoredBytes {
  std::string bytes;
  uint64_t offset = 0;  // of the first byte in the archive
  FileState archive;    // when it was opened
};
Result<StoredBytes> read_stored_file(const std::string& archive, std::string_view name);

// Returns the path of the file of the file system that holds the bytes of a path, which may lead into an archive.
std::string path_on_disk(const std::string& path);

}  // namespace espy::symbols
