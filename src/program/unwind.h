// Tables for unwinding user stacks in BPF: the interface between the programs that unwind (builtins/unwind.cc) and user
// space, which fills the tables (runtime/unwind_tables.cc). All words are native-endian.
//
// `files` (a hash) maps a file, identified by inode number and size, to its table of 64-bit cells. The cells are in
// chunks of one size, a power of two, each the value of an mmapable array. The first chunk is `cells`; the others are
// added to `more_cells`, an array of maps, as tables need them, at the index of the chunk. The index of a cell counts
// through all chunks. Cell 0 is not 0 once the tables are ready.
//
// A table begins with a cell for each page of code (2^kUnwindPageShift bytes of the file), which holds the cells of its
// first and last row. The rows follow: the rule (symbols/unwind.h: FrameRule) in the low half, the file offset from
// which it holds in the high half. The rows of a page are in one chunk.
//
// `stacks` (a hash) holds the stacks: from a hash of the addresses to their number (u32), the epoch in which they were
// last captured (u32) and the addresses, innermost first. User space counts epochs in `globals`, to find stacks that
// are not captured any more (runtime/unwound_stacks.h).
#pragma once

#include <cstdint>

namespace espy::program {

constexpr uint32_t kUnwindPageShift = 8;
constexpr uint32_t kUnwindPageRows = (1 << kUnwindPageShift) + 1;  // at most: one per byte, and one that starts before

// Excludes the device number, which differs between stat(2) and the kernel on overlayfs and btrfs, and the high half of
// the inode number, in which overlayfs may encode the layer. Two files that agree in the rest share a table.
struct UnwindFileKey {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;  // the low 32 bits
  auto operator<=>(const UnwindFileKey&) const = default;
};
// The vDSO, which is not in a file.
constexpr UnwindFileKey kUnwindVdso = {UINT64_MAX, 0};

struct UnwindFile {
  uint32_t has_table = 0;  // 0: the code has no table and is unwound by frame pointers
  uint32_t first_cell = 0;
  uint32_t first_page = 0;
  uint32_t page_count = 0;
};

constexpr uint64_t unwind_page_cell(uint32_t first_row, uint32_t last_row) {
  return uint64_t{last_row} << 32 | first_row;
}
constexpr uint64_t unwind_row_cell(uint32_t file_offset, uint32_t rule) { return uint64_t{file_offset} << 32 | rule; }

}  // namespace espy::program
