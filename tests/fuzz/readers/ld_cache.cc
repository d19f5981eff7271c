// The index of libraries of the dynamic loader.
#include "../reader.h"
#include "symbols/library.h"

namespace espy::fuzz {

void run_ld_cache(std::string_view bytes) {
  for (const uint16_t machine : kMachines)
    for (const auto& library : symbols::parse_ld_cache(*kernel::find_arch(machine), bytes))
      use(std::string(library.name));
}

}  // namespace espy::fuzz
