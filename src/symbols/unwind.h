// Unwind tables: the rules of .eh_frame to find the caller of a frame, as rows sorted by file offset.
//
// A row is valid up to the next one, and fits a word: a BPF program searches the table (builtins/unwind.cc), which
// runtime/unwind_tables.cc loads. x86-64 only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace espy::symbols {

// How to compute the canonical frame address (CFA): the stack pointer in the caller before the call pushed the return
// address. The BPF program depends on the values.
enum class FrameBase : uint8_t {
  kUnknown = 0,       // no entry covers the code, or its rule cannot be encoded
  kEnd = 1,           // the outermost frame: _start, the first function of a thread
  kStackPointer = 2,  // rsp + offset
  kFramePointer = 3,  // rbp + offset
  kLoadFromStackPointer =
      4,  // *(rsp + offset) + 8: after switching or realigning the stack, with the old rsp saved there
  kLoadFromFramePointer = 5,  // *(rbp + offset)
  kPlt = 6,                   // .plt: rsp + 8, or rsp + 16 in the last five bytes of an entry of 16
  kSignalFrame = 7,           // the signal trampoline: registers are in a sigcontext at rsp
};

// A rule in 32 bits: base:4, location of the caller's rbp:8, offset:20 (signed, in units of 8 bytes).
struct FrameRule {
  static constexpr uint32_t kSame = 0;              // rbp: unchanged
  static constexpr uint32_t kUnrecoverable = 254;   // rbp: cannot be recovered
  static constexpr uint32_t kAtFramePointer = 255;  // rbp: at *rbp; else N: at CFA - 8 * N
  static constexpr int64_t kMaxOffsetBytes = (int64_t{1} << 19) * 8 - 8;

  uint32_t bits = 0;

  static FrameRule make(FrameBase base, int64_t offset_bytes, uint32_t rbp) {
    const auto words = static_cast<uint32_t>(offset_bytes / 8);
    return {static_cast<uint32_t>(base) | rbp << 4 | words << 12};
  }
  FrameBase base() const { return static_cast<FrameBase>(bits & 15); }
  uint32_t rbp() const { return bits >> 4 & 255; }
  int64_t offset_bytes() const { return (static_cast<int32_t>(bits) >> 12) * int64_t{8}; }
  bool operator==(const FrameRule&) const = default;
};

struct UnwindRow {
  uint32_t file_offset = 0;
  FrameRule rule;
  bool operator==(const UnwindRow&) const = default;
};

// Returns all rows of a file; empty if it has no .eh_frame (Go, assembly). Fails if the file cannot be opened, is not
// an ELF file of this CPU, or has code beyond 4 GiB.
Result<std::vector<UnwindRow>> read_unwind_rows(const std::string& path);
// The same for an image in memory, such as the vdso.
Result<std::vector<UnwindRow>> read_unwind_rows(std::string image, const std::string& name);

// The same for the vdso of the own process.
Result<std::vector<UnwindRow>> read_vdso_unwind_rows();

// Returns the row that covers a file offset; null before the first.
const UnwindRow* find_row(const std::vector<UnwindRow>& rows, uint32_t file_offset);

}  // namespace espy::symbols
