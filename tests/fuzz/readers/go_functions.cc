// The function table of Go binaries.
#include "symbols/go_functions.h"

#include <cstdlib>

#include "../reader.h"

namespace espy::fuzz {

void run_go_functions(std::string_view bytes) {
  using namespace symbols;
  const auto table = GoFunctionTable::parse(bytes, 0x401000);
  if (!table) return;
  uint64_t last = 0;
  size_t seen = 0;
  for (const GoFunction& function : table->functions()) {
    use(function.name);
    if (seen > 0 && function.address < last && function.address >= 0x401000) std::abort();
    last = function.address;
    if (++seen > 64) continue;
    if (table->stack_depths(function).size() > function.size) std::abort();
    for (const uint64_t offset : {uint64_t{0}, function.size / 2, function.size - 1})
      if (const auto line = table->line_at(function.address + offset)) use(line->file);
  }
}

}  // namespace espy::fuzz
