// Call frame information of a program, as rows.
#include <algorithm>
#include <cstdlib>

#include "../reader.h"
#include "symbols/unwind.h"

namespace espy::fuzz {

namespace {

void use_rows(std::string_view bytes, const kernel::Arch& arch) {
  using namespace symbols;
  const auto rows = read_unwind_rows(std::string(bytes), "input", arch);
  if (!rows) return;
  // BPF searches them: they must be sorted.
  if (std::ranges::adjacent_find(*rows, std::greater_equal(), &UnwindRow::file_offset) != rows->end()) std::abort();
  for (const uint32_t offset : {0U, 0x1000U, UINT32_MAX})
    if (const UnwindRow* row = find_row(*rows, offset); row != nullptr && row->file_offset > offset) std::abort();
}

}  // namespace

void run_eh_frame(std::string_view bytes) {
  for (const uint16_t machine : kMachines) use_rows(bytes, *kernel::find_arch(machine));
}

}  // namespace espy::fuzz
