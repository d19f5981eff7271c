// Resolution of uprobe targets to paths: resolve_library, find_libraries.
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/fd.h"
#include "base/process.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "kernel/proc_path.h"
#include "symbols/archive.h"
#include "symbols/ld_cache.h"
#include "symbols/symbols.h"

namespace espy::symbols {
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
