// A stripped file refers to its symbols in one of three ways:
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
#include "symbols/debug_file.h"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/end_request.h"
#include "base/strings.h"
#include "base/untrusted_file.h"

namespace espy::symbols {
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
  if (is_end_requested()) left_bytes_ = std::min(left_bytes_, std::exchange(left_at_end_bytes_, UINT64_MAX));
  if (bytes > left_bytes_) return false;
  left_bytes_ -= bytes;
  return true;
}

Result<ElfImage> find_debug_file(const ElfImage& image, const std::vector<std::string>& debug_directories) {
  const Wanted wanted(image);
  Error refused{"there is none"};
  for (const std::string& root : debug_directories) {
    for (const std::string& path : candidates(wanted, root)) {
      Result<ElfImage> found = open_matching(path, wanted);
      if (found) return found;
      if (found.error().code == kRefusedFile) refused = found.error();
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
