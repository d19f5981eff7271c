// The notes of USDT probes, and the operands of their arguments.
#include "symbols/usdt.h"

#include "../reader.h"

namespace espy::fuzz {

void run_usdt(std::string_view bytes) {
  using namespace symbols;
  const MemoryFile file(bytes);
  const auto found = read_usdt(file.path());
  if (!found) return;
  size_t seen = 0;
  for (const UsdtLocation& each : *found) {
    use(each.provider + each.name);
    if (++seen > 64) continue;
    for (const std::string& argument : split_usdt_arguments(each.arguments))
      for (const uint16_t machine : kMachines) parse_usdt_operand(*kernel::find_arch(machine), argument);
  }
}

}  // namespace espy::fuzz
