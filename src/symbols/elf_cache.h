// The ELF files that processes map, each read once however many map it. Internal to symbols/.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/untrusted_file.h"
#include "symbols/debug_file.h"
#include "symbols/elf_file.h"

namespace espy::symbols {

struct CachedFile {
  std::shared_ptr<const ElfFile> elf;  // null after it was dropped; to open the file again reads it again
  uint64_t used_at = 0;                // counts lookups
  int reads = 0;
};

class ElfCache {
 public:
  explicit ElfCache(std::vector<std::string> debug_directories) : debug_directories_(std::move(debug_directories)) {}

  // The identity of a mapped file, as opposed to another one at its path now.
  struct MappedFile {
    uint64_t inode = 0;    // 0: any
    uint64_t seen_us = 0;  // since 1970; a file that was changed later is another one; 0: it may be
  };

  // A path may lead into an archive.
  Result<std::shared_ptr<CachedFile>> get(const std::string& path);
  // The same, for a path always the same file. Fails with ESTALE if that was dropped and the path has another one now.
  Result<std::shared_ptr<const ElfFile>> get_for_script(const std::string& path);
  // Returns the file that get_for_script() had for a path if it is the one that was mapped, which the path may not lead
  // to any more; null otherwise.
  std::shared_ptr<CachedFile> find_of_script(const std::string& path, const MappedFile& mapped) const;
  // Opens the file, or, if it is an archive, the file stored at that offset. Fails with ENOENT if it is another
  // file than the one that was mapped.
  Result<std::shared_ptr<CachedFile>> open_with_code(const std::string& path, uint64_t offset,
                                                     const MappedFile& mapped);
  Result<std::shared_ptr<CachedFile>> open_with_code(const UntrustedFile& held, uint64_t offset);
  // Opens a file, to be read later, however many processes hold it.
  Result<std::shared_ptr<const UntrustedFile>> hold(const std::string& path, const MappedFile& mapped);

  size_t file_count() const { return files_.size(); }  // including dropped files in use
  size_t held_count() const { return held_.size(); }
  uint64_t memory_bytes() const;
  void for_each(auto visit) const {
    for (const auto& [key, file] : files_)
      if (file->elf != nullptr) visit(*file->elf);
  }
  // Whether a file was read since the last call.
  bool take_has_grown() { return std::exchange(has_grown_, false); }

  void drop_unused();
  // Returns the least recently used file that takes at least `least_bytes` of memory and that only the cache refers to;
  // null if there is none.
  CachedFile* oldest(uint64_t least_bytes);

 private:
  using Key = std::pair<FileIdentity, uint64_t>;  // and the offset in an archive
  // A file that is not a readable ELF file, and may be an archive.
  struct Failure {
    Error error;
    std::optional<StoredFiles> archive = std::nullopt;
  };

  Result<std::shared_ptr<CachedFile>> get(UntrustedFile opened);
  // `path` leads to the same file.
  Result<std::shared_ptr<CachedFile>> open_or_stored(UntrustedFile opened, const std::string& path, uint64_t offset);
  Result<std::shared_ptr<CachedFile>> open_stored(const Failure& archive, const std::string& path, Key key,
                                                  uint64_t offset);
  std::optional<StoredFiles> read_archive(const std::string& path);
  const Failure& note_failure(const Key& key, Failure failure);
  void forget_failures();
  bool may_read_archive(uint64_t cost_bytes);
  template <class Read>
  Result<std::shared_ptr<CachedFile>> find_or_read(const Key& key, const std::string& path, Read read);

  std::vector<std::string> debug_directories_;
  std::map<Key, std::shared_ptr<CachedFile>> files_;
  std::map<FileIdentity, std::shared_ptr<const UntrustedFile>> held_;
  std::map<Key, Failure> failures_;
  uint64_t archive_bytes_ = 0;       // memory of the archives in failures_
  uint64_t archive_cost_bytes_ = 0;  // that reading archives has taken so far, see kMaxArchiveCostBytes
  bool has_grown_ = false;
  std::map<std::string, std::pair<FileState, uint64_t>> of_script_;  // by path, with the offset in an archive
};

}  // namespace espy::symbols
