// The index of libraries of the dynamic loader.
#include "symbols/ld_cache.h"

#include "../reader.h"

namespace espy::fuzz {

void run_ld_cache(std::string_view bytes) {
  for (const auto& library : symbols::parse_ld_cache(kernel::host_arch(), bytes)) use(std::string(library.name));
}

}  // namespace espy::fuzz
