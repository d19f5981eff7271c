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

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "base/untrusted_file.h"

namespace espy::symbols {
namespace {

std::optional<ElfImage> open_matching(const std::string& path, const std::string& build_id) {
  Result<ElfImage> found = ElfImage::open(path);
  if (!found || found->build_id() != build_id) return std::nullopt;
  if (!found->symbol_table(SHT_SYMTAB)) return std::nullopt;
  return std::move(*found);
}

std::optional<ElfImage> find_by_build_id(const std::string& root, const std::string& build_id) {
  if (build_id.size() < 4) return std::nullopt;
  return open_matching(root + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug", build_id);
}

bool has_crc(const std::string& path, uint32_t wanted) {
  const Result<UntrustedFile> file = open_untrusted(path, max_binary_bytes());
  if (!file) return false;
  constexpr uint64_t kChunkBytes = 1 << 20;
  uLong crc = crc32_z(0, nullptr, 0);
  for (uint64_t at = 0; at < file->size_bytes; at += kChunkBytes) {
    const Result<std::string> bytes = file->read_at(at, std::min(kChunkBytes, file->size_bytes - at));
    if (!bytes) return false;
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes->data()), bytes->size());
  }
  return crc == wanted;
}

std::optional<ElfImage> find_by_link(const ElfImage& image, const std::string& root, const std::string& build_id) {
  const auto link = image.debug_link();
  // A file name without directories.
  if (!link || link->first.find('/') != std::string::npos) return std::nullopt;
  const auto& [name, crc] = *link;
  const std::string directory = directory_of(image.path());
  for (const std::string& path :
       {directory + name, directory + ".debug/" + name, root + directory + name, root + "/" + name}) {
    if (path == image.path()) continue;
    // The build id is as good as the CRC, and does not need the whole file.
    if (build_id.empty() && !has_crc(path, crc)) continue;
    if (std::optional<ElfImage> found = open_matching(path, build_id)) return found;
  }
  return std::nullopt;
}

// A directory of debug files by the names of their programs: `busy.debug` for /usr/bin/busy.
std::optional<ElfImage> find_by_name(const ElfImage& image, const std::string& root, const std::string& build_id) {
  const std::string path = root + "/" + std::string(base_name(image.path())) + ".debug";
  const auto link = image.debug_link();
  if (path == image.path() || (build_id.empty() && link && !has_crc(path, link->second))) return std::nullopt;
  return open_matching(path, build_id);
}

std::optional<std::string> decompress_xz(std::string_view packed) {
  // What `xz -9` takes, and more than the names of any program: a file may be made to exhaust memory.
  constexpr uint64_t kMaxMemoryBytes = 80 << 20;
  constexpr size_t kMaxOutputBytes = 128 << 20;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxMemoryBytes, 0) != LZMA_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string out;
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK && out.size() < kMaxOutputBytes) {
    const size_t used = stream.total_out;
    out.resize(used + std::max<size_t>({packed.size() * 4, used, 65536}));
    stream.next_out = reinterpret_cast<uint8_t*>(out.data()) + used;
    stream.avail_out = out.size() - used;
    state = lzma_code(&stream, LZMA_FINISH);
  }
  out.resize(stream.total_out);
  lzma_end(&stream);
  if (state != LZMA_STREAM_END) return std::nullopt;
  return out;
}

std::optional<ElfImage> find_inside(const ElfImage& image) {
  const std::string_view packed = image.section_bytes(".gnu_debugdata");
  if (packed.empty()) return std::nullopt;
  std::optional<std::string> bytes = decompress_xz(packed);
  if (!bytes) return std::nullopt;
  Result<ElfImage> inner = ElfImage::from_bytes(std::move(*bytes), image.path() + " (.gnu_debugdata)");
  if (!inner) return std::nullopt;
  return std::move(*inner);
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

std::optional<ElfImage> find_debug_image(const ElfImage& image, const std::vector<std::string>& debug_directories) {
  const std::string build_id = image.build_id();
  for (const std::string& root : debug_directories) {
    if (std::optional<ElfImage> found = find_by_build_id(root, build_id)) return found;
    if (std::optional<ElfImage> found = find_by_link(image, root, build_id)) return found;
    if (std::optional<ElfImage> found = find_by_name(image, root, build_id)) return found;
  }
  return find_inside(image);
}

}  // namespace espy::symbols
