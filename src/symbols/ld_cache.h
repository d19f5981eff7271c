// /etc/ld.so.cache: which libraries the loader knows, and where. Inside this room only.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace espy::symbols {

struct CachedLibrary {
  std::string_view name;  // "libc.so.6"
  std::string_view path;
};

// The libraries for this machine's own ABI, in the cache's order; views into `bytes`. Empty if this is not a cache of
// the format that glibc has written since 2.32 ("glibc-ld.so.cache1.1").
std::vector<CachedLibrary> parse_ld_cache(std::string_view bytes);

}  // namespace espy::symbols
