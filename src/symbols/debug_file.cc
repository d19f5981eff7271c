// A ZIP archive ends with a record that locates its directory. The directory has an entry for each file, with the
// offset of a header that precedes the bytes of the file.
#include "symbols/debug_file.h"

#include <fmt/format.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/byte_reader.h"
#include "base/end_request.h"
#include "base/strings.h"
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
                  "only uncompressed files of an archive can be probed");
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
  const auto inside = split_archive_path(path);
  return inside ? inside->archive : path;
}

// ---- A stripped file refers to its symbols in one of three ways:
//
// - a build id, a hash that the debug file shares. A -dbg or -debuginfo package installs that file as
//   /usr/lib/debug/.build-id/ab/cdef.debug;
// - .gnu_debuglink, a file name and a CRC. The file is in the directory of the program, in .debug below that, or at the
//   same path below /usr/lib/debug;
// - .gnu_debugdata ("MiniDebugInfo"), a section with an xz-compressed ELF file that has the names of functions that
//   .dynsym lacks.
//
// In a directory of debug files, NAME.debug is also tried. A debug file is only used if its build id or CRC matches, as
// far as the file has them, since packages are upgraded separately.

namespace {

constexpr std::string_view kPackedSection = ".gnu_debugdata";

// What is known of the debug file of a program.
struct Wanted {
  explicit Wanted(const ElfImage& image) : program(image), build_id(image.build_id()), link(image.debug_link()) {}

  const ElfImage& program;
  std::string build_id;  // "" if there is none
  std::optional<std::pair<std::string, uint32_t>> link;
};

// The CRCs of the files that were read. Each is read once, though several programs can lead to it, or one by several
// paths.
class Checksums {
 public:
  // Fails with kRefusedFile if that would be too much work.
  Result<uint32_t> of(const UntrustedFile& file);

 private:
  std::map<FileIdentity, uint32_t> known_;
};

SearchLimit& search_limit() {
  static SearchLimit limit;
  return limit;
}

tl::unexpected<Error> was_not_searched(const std::string& path) {
  return fail(path + " was not searched for names: it would take too long", kRefusedFile);
}

Result<uint32_t> Checksums::of(const UntrustedFile& file) {
  const FileIdentity key = file.identity();
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  constexpr uint64_t kChunkBytes = 1 << 20, kLeastBytes = 64 << 10;  // also bounds how many are known
  if (!search_limit().take(kLeastBytes)) return was_not_searched(file.path);
  uLong crc = crc32_z(0, nullptr, 0);
  for (uint64_t at = 0; at < file.size_bytes; at += kChunkBytes) {
    const uint64_t part_bytes = std::min(kChunkBytes, file.size_bytes - at);
    if (!search_limit().take(part_bytes)) return was_not_searched(file.path);
    const std::string bytes = TRY(file.read_at(at, part_bytes));
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  }
  return known_[key] = static_cast<uint32_t>(crc);
}

Result<void> check_crc(const ElfImage& found, uint32_t wanted) {
  static Checksums checksums;
  if (!found.file().fd.valid()) return fail("it is in an archive");
  if (TRY(checksums.of(found.file())) != wanted) return fail("it is of another build");
  return {};
}

// What takes longest comes last.
Result<ElfImage> open_matching(const std::string& path, const Wanted& wanted) {
  if (path == wanted.program.path()) return fail("it is the program");
  ElfImage found = TRY(ElfImage::open(path));
  const bool is_alike = found.machine() == wanted.program.machine() && found.is_64bit() == wanted.program.is_64bit();
  if (!is_alike || found.build_id() != wanted.build_id || !found.has_section(SHT_SYMTAB))
    return fail("it is of another program");
  // The build id is as good as the CRC, and does not need the whole file.
  if (wanted.build_id.empty() && wanted.link) TRY_STATUS(check_crc(found, wanted.link->second));
  return found;
}

// A directory of debug files has them by build id, by the path of the program, or by its name: `busy.debug` for
// /usr/bin/busy.
std::vector<std::string> candidates(const Wanted& wanted, const std::string& root) {
  std::vector<std::string> out;
  const std::string& id = wanted.build_id;
  if (id.size() >= 4) out.push_back(root + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  // A file name without directories.
  const std::string name = wanted.link ? wanted.link->first : "";
  if (!name.empty() && name.find('/') == std::string::npos) {
    const std::string directory = directory_of(wanted.program.path());
    for (std::string path :
         {directory + name, directory + ".debug/" + name, root + directory + name, root + "/" + name})
      out.push_back(std::move(path));
  }
  out.push_back(root + "/" + std::string(base_name(wanted.program.path())) + ".debug");
  return out;
}

// A relative directory is also one beside the program. libdw's `+` before it asks for a comparison of the CRC, which is
// always compared.
std::vector<std::string> places_of(std::string_view directory, const ElfImage& program) {
  if (directory.starts_with('+')) directory.remove_prefix(1);
  std::vector<std::string> out = {std::string(directory)};
  if (!directory.empty() && !directory.starts_with('/'))
    out.push_back(directory_of(program.path()) + std::string(directory));
  return out;
}

class Decompressor {
 public:
  explicit Decompressor(const std::string& path) : path_(path) {
    constexpr uint64_t kMaxMemoryBytes = 80 << 20;  // what `xz -9` takes
    state_ = lzma_stream_decoder(&stream_, kMaxMemoryBytes, 0);
  }
  ~Decompressor() { lzma_end(&stream_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  bool wants_more() const { return state_ == LZMA_OK || state_ == LZMA_BUF_ERROR; }
  // Decompresses the next part. Fails if it is too much.
  Status add(std::string_view packed);
  std::string take() { return state_ == LZMA_STREAM_END ? std::move(out_) : ""; }

 private:
  std::string path_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  lzma_ret state_ = LZMA_OK;
  std::string out_;
};

Status Decompressor::add(std::string_view packed) {
  constexpr size_t kMaxBytes = 128 << 20;  // more than the names of any program take
  constexpr size_t kLeastBytes = 64 << 10, kMostBytes = 4 << 20;
  constexpr uint64_t kWorkPerPackedByte = 32, kWorkPerByte = 4;
  if (!search_limit().take(packed.size() * kWorkPerPackedByte)) return was_not_searched(path_);
  stream_.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream_.avail_in = packed.size();
  do {
    const size_t used = out_.size(), room = std::clamp(used, kLeastBytes, kMostBytes);
    out_.resize(used + room);
    stream_.next_out = reinterpret_cast<uint8_t*>(out_.data()) + used;
    stream_.avail_out = room;
    state_ = lzma_code(&stream_, LZMA_RUN);
    out_.resize(out_.size() - stream_.avail_out);
    if (out_.size() > kMaxBytes || !search_limit().take((out_.size() - used) * kWorkPerByte))
      return was_not_searched(path_);
  } while (state_ == LZMA_OK && stream_.avail_out == 0);
  return {};
}

Result<ElfImage> find_inside(const ElfImage& image) {
  constexpr uint64_t kMaxPackedBytes = 32 << 20, kPartBytes = 64 << 10;
  const std::string path = fmt::format("{} ({})", image.path(), kPackedSection);
  const std::string_view packed = image.section_bytes(kPackedSection, kMaxPackedBytes);
  if (packed.empty()) return was_not_searched(path);
  Decompressor unpacked(path);
  for (size_t at = 0; at < packed.size() && unpacked.wants_more(); at += kPartBytes)
    TRY_STATUS(unpacked.add(packed.substr(at, kPartBytes)));
  return ElfImage::from_bytes(unpacked.take(), path);
}

}  // namespace

std::string directory_of(const std::string& path) {
  std::string out = path;
  const std::unique_ptr<char, decltype(&std::free)> real(
      is_in_process_root(path) ? nullptr : ::realpath(path.c_str(), nullptr), &std::free);
  if (real) out = real.get();
  out.resize(out.rfind('/') == std::string::npos ? 0 : out.rfind('/') + 1);
  return out;
}

bool SearchLimit::take(uint64_t bytes) {
  constexpr int64_t kMostAtEnd = 512 << 20;
  if (is_end_requested()) bytes_.lower(kMostAtEnd);
  return bytes_.take_if_left(static_cast<int64_t>(bytes));
}

Result<ElfImage> find_debug_file(const ElfImage& image, const std::vector<std::string>& debug_directories) {
  const Wanted wanted(image);
  Error refused{"there is none"};
  for (const std::string& directory : debug_directories) {
    for (const std::string& root : places_of(directory, image)) {
      for (const std::string& path : candidates(wanted, root)) {
        Result<ElfImage> found = open_matching(path, wanted);
        if (found) return found;
        if (found.error().code == kRefusedFile) refused = found.error();
      }
    }
  }
  return tl::unexpected(refused);
}

Result<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories) {
  Result<ElfImage> separate = find_debug_file(image, debug_directories);
  if (separate || !image.has_section(kPackedSection)) return separate;
  return within_memory("the names in " + image.path(), [&] { return find_inside(image); });
}

}  // namespace espy::symbols
