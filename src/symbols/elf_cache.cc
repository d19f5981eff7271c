#include "symbols/elf_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "symbols/symbols.h"

namespace espy::symbols {

namespace {

// A process can map a file a million times, and one that has a million files.
constexpr size_t kMaxFailures = 1 << 16;
// Of directories of archives, which are read for each file in them, and of files in them that are no ELF files.
constexpr uint64_t kMaxArchiveCostBytes = 1 << 30;

// A new file can have the inode number of one that was deleted; it has changed when it got its name.
Result<UntrustedFile> open_mapped(const std::string& path, const ElfCache::MappedFile& mapped) {
  UntrustedFile opened = TRY(open_untrusted(path, max_binary_bytes()));
  const bool has_changed = mapped.seen_us != 0 && opened.changed_ns / 1000 > mapped.seen_us;
  const bool is_another = mapped.inode != 0 && !is_mapped_inode(opened.inode, mapped.inode);
  if (is_another || has_changed) return fail(path + " is another file", ENOENT);
  return opened;
}

}  // namespace

// A few files that find no room next to each other could be read again for each address.
template <class Read>
Result<std::shared_ptr<CachedFile>> ElfCache::find_or_read(const Key& key, const std::string& path, Read read) {
  constexpr int kMaxReads = 4;
  if (const auto known = files_.find(key); known != files_.end()) {
    if (known->second->elf != nullptr) return known->second;
    if (known->second->reads >= kMaxReads)
      return fail(fmt::format("{} was dropped {} times, because its symbols take too much memory", path, kMaxReads),
                  kRefusedFile);
  }
  ElfFile elf = TRY(read());
  std::shared_ptr<CachedFile>& out = files_[key];
  if (out == nullptr) out = std::make_shared<CachedFile>();
  out->elf = std::make_shared<const ElfFile>(std::move(elf));
  ++out->reads;
  has_grown_ = true;
  return out;
}

Result<std::shared_ptr<CachedFile>> ElfCache::get(const std::string& path) {
  const auto inside = split_archive_path(path);
  if (!inside) return get(TRY(open_untrusted(path, max_binary_bytes())));
  const StoredFile place = TRY(find_stored_file(inside->archive, inside->name));
  const Key key(TRY(open_untrusted(inside->archive, UINT64_MAX)).identity(), place.offset);
  return find_or_read(key, path, [&] { return ElfFile::open(path, debug_directories_); });
}

Result<std::shared_ptr<const ElfFile>> ElfCache::get_for_script(const std::string& path) {
  const auto known = of_script_.find(path);
  if (known != of_script_.end()) {
    const auto& [state, offset] = known->second;
    const auto cached = files_.find({state.identity, offset});
    if (cached != files_.end() && cached->second->elf != nullptr && cached->second->elf->file_state() == state)
      return cached->second->elf;
  }
  auto file = TRY(get(path))->elf;
  const std::pair place(file->file_state(), file->offset_in_archive());
  if (known != of_script_.end() && known->second != place)
    return changed_while_prepared(path, known->second.first, place.first);
  of_script_.emplace(path, place);
  // Mappings have whole paths.
  if (!path.starts_with('/')) of_script_.emplace(whole_path(path), place);
  return file;
}

std::shared_ptr<CachedFile> ElfCache::find_of_script(const std::string& path, const MappedFile& mapped) const {
  const auto known = of_script_.find(path);
  if (known == of_script_.end()) return nullptr;
  const auto& [state, offset] = known->second;
  const bool has_changed = mapped.seen_us != 0 && state.changed_ns / 1000 > mapped.seen_us;
  if (offset != 0 || has_changed || !is_mapped_inode(state.identity.inode, mapped.inode)) return nullptr;
  const auto cached = files_.find({state.identity, offset});
  return cached != files_.end() && cached->second->elf != nullptr ? cached->second : nullptr;
}

Result<std::shared_ptr<CachedFile>> ElfCache::get(UntrustedFile opened) {
  const Key key(opened.identity(), 0);
  const std::string path = opened.path;
  return find_or_read(key, path, [&] { return ElfFile::open(std::move(opened), debug_directories_); });
}

Result<std::shared_ptr<CachedFile>> ElfCache::open_or_stored(UntrustedFile opened, const std::string& path,
                                                             uint64_t offset) {
  const Key key(opened.identity(), 0);
  if (const auto known = failures_.find(key); known != failures_.end())
    return open_stored(known->second, path, key, offset);
  auto file = get(std::move(opened));
  if (file) return file;
  return open_stored(note_failure(key, {file.error(), read_archive(path)}), path, key, offset);
}

Result<std::shared_ptr<CachedFile>> ElfCache::open_stored(const Failure& archive, const std::string& path, Key key,
                                                          uint64_t offset) {
  const auto stored = archive.archive ? archive.archive->at(path, offset) : fail("");
  if (!stored) return tl::unexpected(archive.error);
  key.second = stored->offset;
  if (const auto known = failures_.find(key); known != failures_.end()) return tl::unexpected(known->second.error);
  const std::string name = fmt::format("{}!/{}", path, stored->name);
  if (!files_.contains(key) && !may_read_archive(archive.archive->directory_bytes()))
    return fail("the archives that processes map take too long to be read", kRefusedFile);
  auto file = find_or_read(key, name, [&] { return ElfFile::open(name, debug_directories_); });
  if (!file) {
    archive_cost_bytes_ += stored->size;
    note_failure(key, {file.error()});
  }
  return file;
}

std::optional<StoredFiles> ElfCache::read_archive(const std::string& path) {
  if (!may_read_archive(0)) return std::nullopt;
  auto out = StoredFiles::read(path);
  if (!out) return std::nullopt;
  archive_cost_bytes_ += out->directory_bytes();
  archive_bytes_ += out->memory_bytes();
  has_grown_ = true;
  return std::move(*out);
}

bool ElfCache::may_read_archive(uint64_t cost_bytes) {
  if (archive_cost_bytes_ > kMaxArchiveCostBytes) return false;
  archive_cost_bytes_ += cost_bytes;
  return true;
}

const ElfCache::Failure& ElfCache::note_failure(const Key& key, Failure failure) {
  if (failures_.size() >= kMaxFailures) forget_failures();
  return failures_.emplace(key, std::move(failure)).first->second;
}

void ElfCache::forget_failures() {
  failures_.clear();
  archive_bytes_ = 0;
}

Result<std::shared_ptr<CachedFile>> ElfCache::open_with_code(const std::string& path, uint64_t offset,
                                                             const MappedFile& mapped) {
  return open_or_stored(TRY(open_mapped(path, mapped)), path, offset);
}

// With a descriptor of its own, as the file that is read may be dropped before the held one.
Result<std::shared_ptr<CachedFile>> ElfCache::open_with_code(const UntrustedFile& held, uint64_t offset) {
  const std::string path = descriptor_path(held.fd);
  UntrustedFile opened = TRY(open_untrusted(path, max_binary_bytes()));
  opened.path = held.path;
  return open_or_stored(std::move(opened), path, offset);
}

Result<std::shared_ptr<const UntrustedFile>> ElfCache::hold(const std::string& path, const MappedFile& mapped) {
  UntrustedFile opened = TRY(open_mapped(path, mapped));
  std::shared_ptr<const UntrustedFile>& out = held_[opened.identity()];
  if (out == nullptr) out = std::make_shared<const UntrustedFile>(std::move(opened));
  return out;
}

uint64_t ElfCache::memory_bytes() const {
  uint64_t out = archive_bytes_;
  for_each([&](const ElfFile& file) { out += file.memory_bytes(); });
  return out;
}

void ElfCache::drop_unused() {
  const auto is_used = [](const CachedFile& file) { return file.elf != nullptr && file.elf.use_count() > 1; };
  std::erase_if(files_, [&](const auto& entry) { return entry.second.use_count() == 1 && !is_used(*entry.second); });
  std::erase_if(held_, [](const auto& entry) { return entry.second.use_count() == 1; });
  if (archive_bytes_ > 0) forget_failures();
}

CachedFile* ElfCache::oldest(uint64_t least_bytes) {
  CachedFile* out = nullptr;
  for (const auto& [key, file] : files_) {
    if (file->elf == nullptr || file->elf.use_count() > 1 || file->elf->memory_bytes() < least_bytes) continue;
    if (out == nullptr || file->used_at < out->used_at) out = file.get();
  }
  return out;
}

}  // namespace espy::symbols
