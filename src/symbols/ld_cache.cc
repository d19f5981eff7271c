#include "symbols/ld_cache.h"

#include <limits.h>

#include "base/byte_reader.h"
#include "kernel/arch/arch.h"

namespace espy::symbols {
namespace {

constexpr std::string_view kCacheMagic = "glibc-ld.so.cache1.1";

// Numbers are in the byte order of the machine; offsets of strings are relative to the header.
struct Header {
  char magic[20];
  uint32_t library_count;
  uint32_t strings_bytes;
  uint8_t flags;
  uint8_t padding[3];
  uint32_t extension_offset;
  uint32_t unused[3];
};
static_assert(sizeof(Header) == 48);

struct CacheEntry {
  int32_t flags;  // the low byte is the kind of library, the next one the ABI
  uint32_t name_offset;
  uint32_t path_offset;
  uint32_t os_version;
  uint64_t hardware;  // not 0: only for CPUs with certain extensions
};
static_assert(sizeof(CacheEntry) == 24);

constexpr int32_t kAbiMask = 0xff00;

std::string_view string_at(std::string_view bytes, uint32_t offset) {
  if (offset >= bytes.size()) return {};
  bytes = bytes.substr(offset, PATH_MAX);
  return bytes.substr(0, bytes.find('\0'));
}

}  // namespace

std::vector<CachedLibrary> parse_ld_cache(const kernel::Arch& arch, std::string_view bytes) {
  std::vector<CachedLibrary> out;
  // A cache in compatibility form begins with the format before 2.32.
  const size_t start = bytes.find(kCacheMagic);
  if (start == bytes.npos) return out;
  bytes.remove_prefix(start);
  const auto header = load_struct<Header>(bytes, 0);
  if (!header || header->library_count > (bytes.size() - sizeof(Header)) / sizeof(CacheEntry)) return out;
  for (uint32_t i = 0; i < header->library_count; ++i) {
    const auto entry = load_struct<CacheEntry>(bytes, sizeof(Header) + uint64_t{i} * sizeof(CacheEntry));
    if ((entry->flags & kAbiMask) != arch.library_cache_abi || entry->hardware != 0) continue;
    const CachedLibrary library{string_at(bytes, entry->name_offset), string_at(bytes, entry->path_offset)};
    if (!library.name.empty() && !library.path.empty()) out.push_back(library);
  }
  return out;
}

std::vector<std::string> default_library_directories(const kernel::Arch& arch) {
  const std::string multiarch = "/" + std::string(arch.library_directory);
  return {"/lib64", "/usr/lib64", "/lib" + multiarch, "/usr/lib" + multiarch, "/lib", "/usr/lib", "/usr/local/lib"};
}

}  // namespace espy::symbols
