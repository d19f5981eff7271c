#include "symbols/needed.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/fd.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "symbols/elf_image.h"
#include "symbols/symbols.h"

namespace espy::symbols {
namespace {

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

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

std::optional<std::string> find_library(const std::string& name, const DynamicNeeds& needs, const std::string& origin) {
  if (name.find('/') != name.npos) return is_file(name) ? std::optional(name) : std::nullopt;
  std::vector<std::string> directories;
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  for (const std::string_view list :
       {std::string_view(variable == nullptr ? "" : variable), std::string_view(needs.run_path)}) {
    for (const std::string_view directory : split(list, ':'))
      if (!directory.empty()) directories.push_back(expand(std::string(directory), origin));
  }
  for (const std::string& directory : directories)
    if (std::string path = directory + "/" + name; is_file(path)) return path;
  Result<std::string> path = resolve_library(name);
  return path ? std::optional(*path) : std::nullopt;
}

}  // namespace

std::vector<std::string> needed_files(const std::string& path) {
  constexpr size_t kMost = 512;
  std::vector<std::string> files = {script_interpreter(path).value_or(path)};
  const auto add = [&](const std::string& file) {
    if (std::ranges::find(files, file) == files.end() && files.size() < kMost) files.push_back(file);
  };
  for (size_t i = 0; i < files.size(); ++i) {
    const Result<ElfImage> image = ElfImage::open(files[i]);
    if (!image) continue;
    const DynamicNeeds needs = image->dynamic_needs();
    if (!needs.interpreter.empty()) add(needs.interpreter);
    const std::string origin = directory_of(files[i]);
    for (const std::string& name : needs.libraries)
      if (const auto found = find_library(name, needs, origin)) add(*found);
  }
  return files;
}

}  // namespace espy::symbols
