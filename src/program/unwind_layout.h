// Tables for unwinding user stacks in BPF: the interface between the programs that unwind (builtins/unwind_stack.cc)
// and user space, which fills the tables (runtime/unwind_tables.cc). All words are native-endian.
//
// `files` (a hash) maps a file, identified by UnwindFileKey, to its table of 64-bit cells. The cells are in chunks of
// one size, a power of two, each the value of an mmapable array. The first chunk is `cells`; the others are added to
// `more_cells`, an array of maps, as tables need them, at the index of the chunk. The index of a cell counts through
// all chunks. Cell 0 is not 0 once the tables are ready.
//
// A table begins with a cell for each page of code (2^kUnwindPageShift bytes of the file), which holds the cells of its
// first and last row. The rows follow: the rule (symbols/unwind.h: FrameRule) in the low half, the file offset from
// which it holds in the high half. The rows of a page are in one chunk.
//
// `stacks` (a hash) holds the stacks. It maps a hash of the addresses to their number (u32), the epoch of the last
// capture (u32) and the addresses with their CodeTag, innermost first. User space counts epochs in `globals`, to find
// stacks that are not captured any more (runtime/unwind_tables.h).
//
// User space cannot get the key of a file by stat(2), whose numbers differ from the kernel's on overlayfs and btrfs. It
// maps the file, and runs the program kUnwindKeyName, which reads the key of a mapping in the current task. The value
// of the array of that name is an UnwindKeyQuery, and memory of the program.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace espy::program {

constexpr uint32_t kUnwindPageShift = 8;
constexpr uint32_t kUnwindPageRows = (1 << kUnwindPageShift) + 1;  // at most: one per byte, and one that starts before

// A file, identified by the inode of its mappings. Users can give their file the size and inode number of another one,
// on their own file system or in a subvolume of btrfs. They choose neither the device, nor the generation of the inode
// on a device of others.
struct UnwindFileKey {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;
  uint32_t device = 0;  // in the kernel's own encoding
  uint32_t generation = 0;
  auto operator<=>(const UnwindFileKey&) const = default;

  using Words = std::array<uint64_t, 3>;  // as programs pass it
  static UnwindFileKey from(const Words& words) { return std::bit_cast<UnwindFileKey>(words); }
};
// The vDSO, which is not in a file.
constexpr UnwindFileKey kUnwindVdso = {UINT64_MAX, 0, 0, 0};

constexpr std::string_view kUnwindKeyName = "unwind_key";
struct UnwindKeyQuery {
  uint64_t address = 0;   // in: the start of a mapping
  uint64_t is_known = 0;  // out: 1 if the mapping is of a regular file
  UnwindFileKey key;      // out
};

// A stack with so many frames or more, and as many as the script asks for, is shown as one that has more. This is how
// many it asks for if it does not say, and how many the kernel captures (kernel.perf_event_max_stack).
constexpr uint32_t kWholeStackFrames = 127;

struct UnwindFile {
  uint32_t has_table = 0;  // 0: the code has no table and is unwound by frame pointers
  uint32_t first_cell = 0;
  uint32_t first_page = 0;
  uint32_t page_count = 0;
};

// What a frame of a stack in `stacks` was in: the highest byte of its address, which no address in user space uses. The
// mappings of a process change, and the address alone does not show whose code was there when the stack was captured.
constexpr int kCodeTagShift = 56;
constexpr uint64_t kCodeAddress = (uint64_t{1} << kCodeTagShift) - 1;
enum CodeTag : uint8_t {
  kUnknownCode = 0,    // also of stacks that were not unwound
  kAnonymousCode = 1,  // in no regular file
  kVdsoCode = 2,
  kFileCode = 0x7f,  // and a hash of seven bits of the file and its place in memory
};
constexpr int kCodeHashShift = 57;
constexpr uint64_t kCodeHashFactor = 0x9e3779b97f4a7c15;
// `bias`: from an address to the file offset, modulo 2^64.
constexpr uint8_t file_code_tag(uint64_t inode, uint64_t bias) {
  return static_cast<uint8_t>(kFileCode + ((inode ^ bias) * kCodeHashFactor >> kCodeHashShift));
}
constexpr uint64_t tagged(uint64_t address, uint8_t tag) { return address | uint64_t{tag} << kCodeTagShift; }
// Stacks that followed frame pointers can have any numbers as addresses.
constexpr uint8_t code_tag(uint64_t tagged) {
  const auto tag = static_cast<uint8_t>(tagged >> kCodeTagShift);
  return tag == kAnonymousCode || tag == kVdsoCode || (tag >= kFileCode && tag != UINT8_MAX) ? tag : 0;
}
constexpr uint64_t code_address(uint64_t tagged) { return code_tag(tagged) == 0 ? tagged : tagged & kCodeAddress; }

constexpr uint64_t unwind_page_cell(uint32_t first_row, uint32_t last_row) {
  return uint64_t{last_row} << 32 | first_row;
}
constexpr uint64_t unwind_row_cell(uint32_t file_offset, uint32_t rule) { return uint64_t{file_offset} << 32 | rule; }

}  // namespace espy::program
