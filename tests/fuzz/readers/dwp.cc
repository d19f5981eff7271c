// A package of debug information: its index, and the parts that are made files of their own.
#include <unistd.h>

#include "../reader.h"
#include "base/byte_reader.h"
#include "symbols/dwarf/package.h"

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
    const std::string path = package->extract(load_le(index, 16 + i * 8), "unit.dwo");
    if (path.empty()) continue;
    if (const auto part = ElfImage::open(path)) use(part->section_bytes(".debug_info.dwo"));
    ::unlink(path.c_str());
  }
  package->extract(load_le(index, 16), "../unit.dwo");
}

}  // namespace espy::fuzz
