// The list of functions of a JIT compiler.
#include "symbols/perf_map.h"

#include "../reader.h"

namespace espy::fuzz {

void run_perf_map(std::string_view bytes) {
  const symbols::PerfMap map{std::string(bytes)};
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x7f0000001008}, UINT64_MAX})
    if (const auto entry = map.at(address)) use(entry->name);
}

}  // namespace espy::fuzz
