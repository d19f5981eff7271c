#include "symbols/library.h"

#include <fmt/format.h>
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/byte_reader.h"
#include "base/files.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "kernel/processes.h"
#include "symbols/debug_file.h"
#include "symbols/elf_image.h"
#include "symbols/symbols.h"

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

namespace {

std::string directory_of_library(const std::string& path) { return path.substr(0, path.rfind('/')); }

// "#!/bin/sh -e" -> "/bin/sh"
std::optional<std::string> script_interpreter(const std::string& path) {
  constexpr uint64_t kMaxLineBytes = 255;  // BINPRM_BUF_SIZE
  const Result<UntrustedFile> file = open_untrusted(path, UINT64_MAX);
  const std::string line = file ? file->read_at(0, kMaxLineBytes).value_or("") : "";
  if (!line.starts_with("#!")) return std::nullopt;
  const std::string_view text = trim(std::string_view(line).substr(2));
  return std::string(text.substr(0, text.find_first_of(" \t\n")));
}

// Replaces $ORIGIN, the directory of the file.
std::string expand(std::string directory, const std::string& origin) {
  for (const std::string_view variable : {"$ORIGIN", "${ORIGIN}"})
    if (const size_t at = directory.find(variable); at != directory.npos)
      directory.replace(at, variable.size(), origin);
  return directory;
}

// Finds libraries as the dynamic loader does. A program can name more libraries and directories than any real one
// does, and links can make each look-up slow.
class LibrarySearch {
 public:
  LibrarySearch() : cache_bytes_(read_untrusted("/etc/ld.so.cache", kMaxTextBytes).value_or("")) {
    for (const CachedLibrary& library : parse_ld_cache(kernel::host_arch(), cache_bytes_))
      cached_.try_emplace(library.name, library.path);
  }
  LibrarySearch(const LibrarySearch&) = delete;
  LibrarySearch& operator=(const LibrarySearch&) = delete;

  // Returns the directories of a list that exist, each once.
  std::vector<std::string> directories(std::string_view list, const std::string& origin) {
    std::vector<std::string> out;
    std::unordered_set<std::string> seen;
    std::error_code ignored;
    for (const std::string_view each : split(list, ':')) {
      if (each.empty() || !may_look_up()) continue;
      std::string directory = expand(std::string(each), origin);
      if (seen.insert(directory).second && std::filesystem::is_directory(directory, ignored))
        out.push_back(std::move(directory));
    }
    return out;
  }

  // As the loader, takes a library that is known by that name already.
  std::optional<std::string> find(const std::string& name, const std::vector<std::string>& directories) {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    std::string path = search(name, directories);
    if (path.empty()) return std::nullopt;
    known_.emplace(name, path);
    return path;
  }

 private:
  std::string search(const std::string& name, const std::vector<std::string>& directories) {
    if (name.find('/') != name.npos) return may_look_up() && is_file(name) ? name : "";
    for (const std::string& directory : directories)
      if (std::string path = directory + "/" + name; may_look_up() && is_file(path)) return path;
    if (const auto cached = cached_.find(name); cached != cached_.end())
      if (std::string path(cached->second); may_look_up() && is_file(path)) return path;
    for (const std::string& directory : default_directories_)
      if (std::string path = directory + "/" + name; may_look_up() && is_file(path)) return path;
    return "";
  }

  bool may_look_up() {
    constexpr std::chrono::seconds kMaxCpu(1);
    if (left_lookups_ == 0) return false;
    --left_lookups_;
    return thread_cpu_time() - begin_ < kMaxCpu;
  }

  const std::string cache_bytes_;
  std::unordered_map<std::string_view, std::string_view> cached_;  // paths by names
  const std::vector<std::string> default_directories_ = default_library_directories(kernel::host_arch());
  std::unordered_map<std::string, std::string> known_;
  int left_lookups_ = 100'000;
  const std::chrono::nanoseconds begin_ = thread_cpu_time();
};

}  // namespace

std::vector<std::string> needed_files(const std::string& path) {
  constexpr size_t kMost = 512;
  std::vector<std::string> files = {script_interpreter(path).value_or(path)};
  const auto add = [&](const std::string& file) {
    if (std::ranges::find(files, file) == files.end() && files.size() < kMost) files.push_back(file);
  };
  LibrarySearch search;
  for (size_t i = 0; i < files.size(); ++i) {
    const Result<ElfImage> image = ElfImage::open(files[i]);
    if (!image) continue;
    const DynamicNeeds needs = image->dynamic_needs();
    if (!needs.interpreter.empty()) add(needs.interpreter);
    const char* variable = std::getenv("LD_LIBRARY_PATH");
    const std::vector<std::string> directories = search.directories(
        std::string(variable == nullptr ? "" : variable) + ":" + needs.run_path, directory_of_library(files[i]));
    for (const std::string& name : needs.libraries) {
      if (files.size() == kMost) break;
      if (const auto found = search.find(name, directories)) add(*found);
    }
  }
  return files;
}

// ---- Resolution of uprobe targets to paths: resolve_library, find_libraries.

namespace {

// Whether a target `wanted` names `file`: for libssl.so.3 these are the file name, `libssl.so`, `libssl` and `ssl`; for
// libc-2.31.so also `libc` and `c`.
bool matches_library(std::string_view file, std::string_view wanted) {
  if (file == wanted) return true;
  if (file.find(".so") == file.npos) return false;
  for (const std::string& stem : {std::string(wanted), "lib" + std::string(wanted)}) {
    if (!file.starts_with(stem)) continue;
    const std::string_view rest = file.substr(stem.size());
    const bool is_versioned = rest.size() > 1 && rest[0] == '-' && rest[1] >= '0' && rest[1] <= '9';
    if (rest.starts_with(".so") || is_versioned) return true;
    if (stem.find(".so") != stem.npos && rest.starts_with('.')) return true;
  }
  return false;
}

// Returns a path in the tracer's mount namespace for a file of a process.
std::string reachable_path(uint32_t pid, const std::string& path, uint64_t inode) {
  struct stat status = {};
  const bool is_ours = ::stat(path.c_str(), &status) == 0 && status.st_ino == inode;
  return is_ours ? path : kernel::proc_path(pid, "root") + path;
}

std::optional<std::string> find_mapped(std::string_view name, uint32_t pid) {
  std::optional<std::string> out;
  (void)visit_mapped_code(pid, kMaxTextBytes, [&](const Mapping& mapping) {
    const bool is_found =
        !mapping.deleted && mapping.path.starts_with('/') && matches_library(base_name(mapping.path), name);
    if (is_found) out = reachable_path(pid, mapping.path, mapping.inode);
    return !is_found;
  });
  return out;
}

std::optional<std::string> find_cached_library(const kernel::Arch& arch, std::string_view name) {
  const Result<std::string> bytes = read_untrusted("/etc/ld.so.cache", kMaxTextBytes);
  if (!bytes) return std::nullopt;
  for (const CachedLibrary& library : parse_ld_cache(arch, *bytes)) {
    if (matches_library(library.name, name) && is_file(std::string(library.path))) return std::string(library.path);
  }
  return std::nullopt;
}

// Excludes linker scripts, such as the libc.so of a development package.
bool is_elf(const std::string& path) {
  const Result<UntrustedFile> file = open_untrusted(path, UINT64_MAX);
  return file && file->read_at(0, 4).value_or("") == "\177ELF";
}

// Searches without a cache. Of several versions, returns the one that sorts last.
std::optional<std::string> find_in_default_directories(const kernel::Arch& arch, std::string_view name) {
  for (const std::string& directory : default_library_directories(arch)) {
    std::string best;
    std::error_code error;
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
      std::string path = it->path().string();
      if (path > best && matches_library(base_name(path), name) && is_elf(path)) best = std::move(path);
    }
    if (!best.empty()) return best;
  }
  return std::nullopt;
}

Result<std::string> check_path(std::string_view name, std::optional<uint32_t> pid) {
  if (const auto inside = split_archive_path(name)) {
    const std::string archive = TRY(check_path(inside->archive, pid));
    TRY(find_stored_file(archive, inside->name));
    return fmt::format("{}!/{}", archive, inside->name);
  }
  std::string path(name);
  if (pid && path.starts_with('/')) {
    std::string inside = kernel::proc_path(*pid, "root") + path;
    struct stat ours = {};
    const Result<UntrustedFile> theirs = open_untrusted(inside, UINT64_MAX);
    const bool is_same =
        theirs && ::stat(path.c_str(), &ours) == 0 && ours.st_ino == theirs->inode && ours.st_dev == theirs->device;
    if (theirs && is_same) return path;
    if (theirs) return inside;
  }
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return cannot_open(path, errno);
  if (!S_ISREG(status.st_mode)) return fail(std::string(name) + " is not a file");
  return path;
}

std::vector<std::string> paths_by_glob(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> out;
  if (::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found) == 0)
    out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::ranges::sort(out);
  return out;
}

}  // namespace

std::vector<std::string> find_libraries(const std::string& pattern, std::optional<uint32_t> pid) {
  std::vector<std::string> out;
  std::set<std::pair<uint64_t, uint64_t>> seen;  // device, inode
  const auto add = [&](const std::string& path) {
    struct stat status = {};
    const bool is_new = ::stat(path.c_str(), &status) == 0 && seen.emplace(status.st_dev, status.st_ino).second;
    if (is_new && is_elf(path)) out.push_back(path);
  };
  if (pattern.find('/') != pattern.npos) {
    // In the mount namespace of the process, as for a path without wildcards.
    const std::string root = pid && pattern.starts_with('/') ? kernel::proc_path(*pid, "root") : "";
    for (const std::string& found : paths_by_glob(root + pattern))
      add(check_path(found.substr(root.size()), pid).value_or(found));
    return out;
  }
  for (const uint32_t process : pid ? std::vector{*pid} : numbered_entries("/proc")) {
    (void)visit_mapped_code(process, kMaxTextBytes, [&](const Mapping& mapping) {
      if (mapping.deleted || !mapping.path.starts_with('/')) return true;
      if (!glob_match(pattern, base_name(mapping.path))) return true;
      const std::pair<uint64_t, uint64_t> key(mapping.device, mapping.inode);
      if (seen.contains(key)) return true;
      std::string path = reachable_path(process, mapping.path, mapping.inode);
      if (!is_elf(path)) return true;  // or the process has exited; another may map the file
      seen.insert(key);
      out.push_back(std::move(path));
      return true;
    });
  }
  const char* directories = pid ? nullptr : ::getenv("PATH");
  const bool names_something = pattern.find_first_not_of("*?[]") != pattern.npos;  // not all commands of the machine
  if (directories != nullptr && names_something)
    for (const std::string_view directory : split(directories, ':'))
      for (const std::string& path : paths_by_glob(std::string(directory) + "/" + pattern)) add(path);
  return out;
}

tl::unexpected<Error> changed_while_prepared(const std::string& path, const FileState& read, const FileState& now) {
  return fail(fmt::format("{} {} while the script was prepared", path, what_became_of(read, now)), ESTALE,
              "run espy again");
}

Result<std::string> resolve_library(std::string_view name_or_path, std::optional<uint32_t> pid,
                                    const kernel::Arch& arch) {
  const std::string_view name = name_or_path;
  if (name.empty()) return fail("the name of a program or library is empty");
  if (name.find('/') != name.npos) return check_path(name, pid);
  if (pid) {
    if (std::optional<std::string> path = find_mapped(name, *pid)) return std::move(*path);
  }
  const bool names_library = name.starts_with("lib") || name.find(".so") != name.npos;
  if (!names_library) {
    if (std::optional<std::string> path = find_program(name)) return std::move(*path);
  }
  if (std::optional<std::string> path = find_cached_library(arch, name)) return std::move(*path);
  if (std::optional<std::string> path = find_in_default_directories(arch, name)) return std::move(*path);
  if (names_library) {
    if (std::optional<std::string> path = find_program(name)) return std::move(*path);
  }
  return fail("there is no command or library named " + std::string(name), ENOENT,
              "give its path, or a name that is in $PATH or listed by `ldconfig -p`");
}

}  // namespace espy::symbols
