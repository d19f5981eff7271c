// User stacks unwound by tables: the agreement between the BPF program that walks (builtins/unwind.cc) and user space,
// which fills the tables (runtime/unwind_tables.cc). All words are native-endian.
//
// `files` (a hash) tells of a file, by inode number and size, where its table lies in `cells`, one value of 64-bit
// cells that user space has mapped. Cell 0 is not 0 once the programs may begin. A table is, first, a cell for each
// page of code (2^kUnwindPageShift bytes of the file): the cells of its first and its last row. Then the rows: the rule
// (symbols/unwind.h: FrameRule) in the low half, in the high half the file offset from which it holds.
//
// `stacks` (a hash) holds the stacks found: by a hash of the addresses their number and themselves, innermost first.
#pragma once

#include <cstdint>

namespace espy::program {

constexpr uint32_t kUnwindPageShift = 8;

// Not by device: a file on overlayfs or btrfs has one for stat(2) and another for the kernel; nor by the high half of
// the inode number, where overlayfs may mark the layer. Two files that agree in the rest would share a table.
struct UnwindFileKey {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;  // the low 32 bits
  auto operator<=>(const UnwindFileKey&) const = default;
};
// The code that the kernel maps into each process, which is in no file.
constexpr UnwindFileKey kUnwindVdso = {UINT64_MAX, 0};

struct UnwindFile {
  uint32_t has_table = 0;  // else its code is known to have none: frame pointers are followed
  uint32_t first_cell = 0;
  uint32_t first_page = 0;
  uint32_t page_count = 0;
};

constexpr uint64_t unwind_page_cell(uint32_t first_row, uint32_t last_row) {
  return uint64_t{last_row} << 32 | first_row;
}
constexpr uint64_t unwind_row_cell(uint32_t file_offset, uint32_t rule) { return uint64_t{file_offset} << 32 | rule; }

}  // namespace espy::program
