#include "symbols/needed.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fd.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "kernel/arch/arch.h"
#include "symbols/elf_image.h"
#include "symbols/ld_cache.h"

namespace espy::symbols {
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
    constexpr std::clock_t kMaxCpu = 1 * CLOCKS_PER_SEC;
    if (left_lookups_ == 0) return false;
    --left_lookups_;
    return std::clock() - begin_ < kMaxCpu;
  }

  const std::string cache_bytes_;
  std::unordered_map<std::string_view, std::string_view> cached_;  // paths by names
  const std::vector<std::string> default_directories_ = default_library_directories(kernel::host_arch());
  std::unordered_map<std::string, std::string> known_;
  int left_lookups_ = 100'000;
  const std::clock_t begin_ = std::clock();
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

}  // namespace espy::symbols
