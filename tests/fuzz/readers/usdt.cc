// The notes of USDT probes, and the operands of their arguments.
#include "../reader.h"
#include "symbols/elf_file.h"

namespace espy::fuzz {

void run_usdt(std::string_view bytes) {
  using namespace symbols;
  const MemoryFile file(bytes);
  const auto elf = ElfFile::open(file.path());
  if (!elf) return;
  size_t seen = 0;
  for (const UsdtLocation& each : read_usdt(*elf)) {
    use(each.provider + each.name);
    if (++seen > 64) continue;
    for (const std::string& argument : split_usdt_arguments(each.arguments))
      for (const uint16_t machine : kMachines) parse_usdt_operand(*kernel::find_arch(machine), argument);
  }
}

}  // namespace espy::fuzz
