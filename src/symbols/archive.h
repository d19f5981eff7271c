// Libraries within ZIP archives, as Android's loader takes them from packages: "app.apk!/lib/x86_64/libfoo.so".
//
// Only a file that is stored there as it is can be mapped, and so only such a one has code at some offset of the
// archive. Format: PKWARE's APPNOTE.TXT, 4.3; archives beyond 4 GiB (ZIP64) are not read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espy::symbols {

struct ArchivePath {
  std::string archive;
  std::string name;  // within it
};
// Nothing for the path of a file that is in no archive; "wow!/file" is one where there is a directory `wow!`.
std::optional<ArchivePath> split_archive_path(std::string_view path);

struct StoredFile {
  std::string name;
  uint64_t offset = 0;  // of its first byte in the archive
  uint64_t size = 0;    // bytes
};
Result<StoredFile> find_stored_file(const std::string& archive, std::string_view name);
// The one that has this byte of the archive.
Result<StoredFile> stored_file_at(const std::string& archive, uint64_t offset);

struct StoredBytes {
  std::string bytes;
  uint64_t offset = 0;  // of the first in the archive
};
Result<StoredBytes> read_stored_file(const std::string& archive, std::string_view name);

// Where the bytes of a path are that may lead into an archive: a file of the file system, and the offset of the first.
struct PlaceOnDisk {
  std::string path;
  uint64_t offset = 0;
};
Result<PlaceOnDisk> place_on_disk(const std::string& path);

}  // namespace espy::symbols
