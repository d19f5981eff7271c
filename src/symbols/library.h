// Which files a program maps when it starts, and how the loader finds libraries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"

namespace espy::symbols {

// ---- /etc/ld.so.cache, the index of libraries of the dynamic loader, and where it searches without. Internal to
// symbols/.

struct CachedLibrary {
  std::string_view name;  // "libc.so.6"
  std::string_view path;
};

// Returns the libraries for the CPU, in the order of the cache, as views into `bytes`. Empty unless the
// cache has the format of glibc 2.32 and later ("glibc-ld.so.cache1.1").
std::vector<CachedLibrary> parse_ld_cache(const kernel::Arch& arch, std::string_view bytes);

// Returns the directories that loaders search without a cache, in this order.
std::vector<std::string> default_library_directories(const kernel::Arch& arch);

// ---- The files that a program maps when it starts: itself, the dynamic loader, and the libraries they depend on.

// Returns their paths as the loader finds them, the program first; files that are not found are omitted. For a script
// (#!) the program is its interpreter. Libraries opened later with dlopen are not included.
std::vector<std::string> needed_files(const std::string& path);

}  // namespace espy::symbols
