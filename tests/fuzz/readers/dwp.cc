// A package of debug information: its index, and the parts that are made files of their own.
#include "../reader.h"
#include "base/byte_reader.h"
#include "symbols/dwarf/split_file.h"

namespace espy::fuzz {

void run_dwp(std::string_view bytes) {
  using namespace symbols;
  const MemoryFile file(bytes);
  const auto image = ElfImage::open(file.path());
  auto package = dwarf::Package::open(file.path());
  if (!image || !package) return;
  // The ids of units follow the header of 16 bytes.
  const std::string_view index = image->section_bytes(".debug_cu_index");
  constexpr uint64_t kMaxUnits = 8;
  for (uint64_t i = 0; i < kMaxUnits; ++i) {
    const uint64_t id = load_le(index, 16 + i * 8);
    std::string unit = package->unit(id);
    if (unit.empty()) continue;
    dwarf::split_units(unit);
    if (const auto part = ElfImage::from_bytes(std::move(unit), "unit.dwo"))
      use(part->section_bytes(".debug_info.dwo"));
  }
}

}  // namespace espy::fuzz
