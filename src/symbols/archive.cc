// A ZIP archive ends with a record that locates its directory. The directory has an entry for each file, with the
// offset of a header that precedes the bytes of the file.
#include "symbols/archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/byte_reader.h"
#include "base/untrusted_file.h"

namespace espy::symbols {
namespace {

constexpr std::string_view kEndSignature = "PK\5\6";
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kHeaderSignature = 0x04034b50;
constexpr uint64_t kMaxArchiveBytes = uint64_t{1} << 32;  // ZIP64 is not read
constexpr size_t kEndBytes = 22;
constexpr size_t kEntryBytes = 46;
constexpr size_t kHeaderBytes = 30;
constexpr size_t kMaxCommentBytes = 0xffff;        // after the end record
constexpr uint64_t kMaxDirectoryBytes = 64 << 20;  // archives are untrusted: bounds the memory for one
constexpr uint64_t kMaxFileBytes = 1 << 30;
constexpr std::string_view kSeparator = "!/";

struct Entry {
  std::string name;
  uint64_t name_offset = 0;
  uint64_t header_offset = 0;
  uint64_t size = 0;
  bool is_stored = false;
};

class Archive {
 public:
  static Result<Archive> open(const std::string& path) {
    Archive out = TRY(open_without_directory(path));
    TRY_STATUS(out.read_directory());
    return out;
  }

  static Result<Archive> open_without_directory(const std::string& path) {
    Archive out;
    out.file_ = TRY(open_untrusted(path, kMaxArchiveBytes));
    return out;
  }

  const std::vector<Entry>& entries() const { return entries_; }
  uint64_t directory_bytes() const { return directory_bytes_; }
  FileState state() const { return file_.state(); }

  Result<StoredFile> find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    if (found == entries_.end()) return fail(fmt::format("{} has no file {}", file_.path, name), ENOENT);
    return locate(*found);
  }

  // "" if they are not all within the file.
  std::string bytes(uint64_t offset, uint64_t size) const {
    if (offset > file_.size_bytes || size > file_.size_bytes - offset) return {};
    std::string out = file_.read_at(offset, size).value_or("");
    return out.size() == size ? out : std::string();
  }

  Result<StoredFile> locate(const Entry& entry) const {
    if (!entry.is_stored)
      return fail(fmt::format("{} in {} is compressed", entry.name, file_.path), 0,
                  "only what is stored as it is can be mapped, and probed");
    const std::string header = bytes(entry.header_offset, kHeaderBytes);
    if (header.empty() || load_le(header, 0, 4) != kHeaderSignature) return broken();
    const uint64_t names_bytes = load_le(header, 26, 2) + load_le(header, 28, 2);
    return StoredFile{entry.name, entry.header_offset + kHeaderBytes + names_bytes, entry.size};
  }

 private:
  tl::unexpected<Error> broken() const { return fail(file_.path + " is not a ZIP archive"); }

  Status read_directory() {
    const uint64_t tail_bytes = std::min<uint64_t>(file_.size_bytes, kEndBytes + kMaxCommentBytes);
    const std::string tail = bytes(file_.size_bytes - tail_bytes, tail_bytes);
    const size_t end = tail.rfind(kEndSignature);
    if (end == std::string::npos || tail.size() - end < kEndBytes) return broken();
    const uint64_t directory_bytes = load_le(tail, end + 12, 4);
    if (directory_bytes > kMaxDirectoryBytes) return fail(file_.path + " has too many files");
    const uint64_t directory_offset = load_le(tail, end + 16, 4);
    const std::string directory = bytes(directory_offset, directory_bytes);
    directory_bytes_ = directory.size();
    for (size_t at = 0; at + kEntryBytes <= directory.size();) {
      if (load_le(directory, at, 4) != kEntrySignature) return broken();
      const size_t name_bytes = load_le(directory, at + 28, 2);
      Entry entry{directory.substr(at + kEntryBytes, name_bytes), directory_offset + at + kEntryBytes};
      entry.is_stored = load_le(directory, at + 10, 2) == 0;
      entry.size = load_le(directory, at + 24, 4);
      entry.header_offset = load_le(directory, at + 42, 4);
      entries_.push_back(std::move(entry));
      at += kEntryBytes + name_bytes + load_le(directory, at + 30, 2) + load_le(directory, at + 32, 2);
    }
    return {};
  }

  UntrustedFile file_;
  std::vector<Entry> entries_;
  uint64_t directory_bytes_ = 0;
};

}  // namespace

std::optional<ArchivePath> split_archive_path(std::string_view path) {
  for (size_t at = path.find(kSeparator); at != path.npos; at = path.find(kSeparator, at + 1)) {
    const std::string archive(path.substr(0, at));
    struct stat status = {};
    const bool is_directory = ::stat((archive + "!").c_str(), &status) == 0;
    if (at > 0 && !is_directory) return ArchivePath{archive, std::string(path.substr(at + kSeparator.size()))};
  }
  return std::nullopt;
}

Result<StoredFile> find_stored_file(const std::string& archive, std::string_view name) {
  const Archive opened = TRY(Archive::open(archive));
  return opened.find(name);
}

Result<StoredFiles> StoredFiles::read(const std::string& archive) {
  const Archive opened = TRY(Archive::open(archive));
  StoredFiles out;
  out.directory_bytes_ = opened.directory_bytes();
  for (const Entry& entry : opened.entries())
    if (entry.is_stored)
      out.places_.push_back({static_cast<uint32_t>(entry.header_offset), static_cast<uint32_t>(entry.size),
                             static_cast<uint32_t>(entry.name_offset), static_cast<uint32_t>(entry.name.size())});
  std::ranges::sort(out.places_, {}, &Place::header_offset);
  return out;
}

Result<StoredFile> StoredFiles::at(const std::string& archive, uint64_t offset) const {
  const auto none = [&] { return fail(fmt::format("{} has no file at {:#x}", archive, offset)); };
  const auto after = std::ranges::upper_bound(places_, offset, {}, &Place::header_offset);
  if (after == places_.begin()) return none();
  const Place& place = *std::prev(after);
  const Archive opened = TRY(Archive::open_without_directory(archive));
  StoredFile found = TRY(opened.locate({.name = opened.bytes(place.name_offset, place.name_bytes),
                                        .header_offset = place.header_offset,
                                        .size = place.size,
                                        .is_stored = true}));
  if (offset < found.offset || offset - found.offset >= found.size) return none();
  return found;
}

Result<StoredBytes> read_stored_file(const std::string& archive, std::string_view name) {
  const Archive opened = TRY(Archive::open(archive));
  const StoredFile file = TRY(opened.find(name));
  if (file.size > kMaxFileBytes) return fail(fmt::format("{} in {} is too large", name, archive));
  StoredBytes out{opened.bytes(file.offset, file.size), file.offset, opened.state()};
  if (out.bytes.size() != file.size) return fail(fmt::format("{} in {} is not all there", name, archive));
  return out;
}

std::string path_on_disk(const std::string& path) {
  auto inside = split_archive_path(path);
  return inside ? std::move(inside->archive) : path;
}

}  // namespace espy::symbols
