// Separate debug files of stripped programs, and libraries within ZIP archives. Internal to symbols/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/limits.h"
#include "base/result.h"
#include "symbols/elf_image.h"

namespace espy::symbols {

// ---- Libraries within ZIP archives, like the loader of Android maps them from packages:
// "app.apk!/lib/x86_64/libfoo.so".
//
// Only files stored without compression can be mapped, and so have code at an offset of the archive. Format: PKWARE
// APPNOTE.TXT, 4.3. ZIP64 archives (above 4 GiB) are not read.

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

// Returns the path of the file with the bytes of a path, which may lead into an archive.
std::string path_on_disk(const std::string& path);

// ---- Separate debug files of stripped files. Internal to symbols/.

// Returns the separate debug file, found by build id or by .gnu_debuglink. Fails with kRefusedFile if one may be there
// but would take too much.
Result<ElfImage> find_debug_file(const ElfImage& image, const std::vector<std::string>& debug_directories);

// Returns the image with the symbols that a file without .symtab lacks: that file, or else the content of
// .gnu_debugdata, which has no debug information. Its addresses are addresses of the file.
Result<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories);

// The limit of work for the search of debug files in a run, in bytes of a checksum. Any user can have many large files
// that take no disk. After the end was requested it may be less, because the end waits for it.
class SearchLimit {
 public:
  // Returns false if the work is too much.
  bool take(uint64_t bytes);

 private:
  WorkBudget<int64_t> bytes_{int64_t{4} << 30};
};

// Returns the directory of a file, with a slash at its end. A path within the root of a process stays there.
std::string directory_of(const std::string& path);

}  // namespace espy::symbols
