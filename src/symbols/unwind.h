// How to get from a place in a program's code to the caller: what .eh_frame says, as a sorted table of small rows.
//
// In goes an ELF file; out come rows in order of file offset, each good up to the next one. The table is made for a
// BPF program to search (builtins/unwind.cc), so a row is a word; runtime/unwind_tables.cc puts it where it can.
// x86-64 only. Nothing here reads a process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace espy::symbols {

// Where the canonical frame address (CFA) is: the stack pointer's value in the caller, just before the call's return
// address was pushed. The numbers are part of the agreement with the BPF program.
enum class FrameBase : uint8_t {
  kUnknown = 0,        // no entry covers this code, or it has a rule that no row can hold
  kEnd = 1,            // nobody called this: _start, the first function of a thread
  kStackPointer = 2,   // rsp + offset
  kFramePointer = 3,   // rbp + offset
  kBehindStack = 4,    // *(rsp + offset) + 8: code that has switched or aligned its stack and kept the old one there
  kBehindFrame = 5,    // *(rbp + offset)
  kLinkageTable = 6,   // rsp + 8, and another 8 in the last five bytes of an entry of 16: .plt
  kSignalHandler = 7,  // the interrupted registers lie in a sigcontext at rsp
};

// One row's rule in 32 bits: base:4, place of the caller's rbp:8, offset:20 (signed, in units of 8 bytes).
struct FrameRule {
  static constexpr uint32_t kSame = 0;       // rbp: nobody has touched it
  static constexpr uint32_t kLost = 254;     // rbp: not to be had
  static constexpr uint32_t kAtFrame = 255;  // rbp: at *rbp; else N: at CFA - 8 * N
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

// All rows of a file, ascending; empty where it has no .eh_frame (Go, hand-written code). Errors: what cannot be
// opened, is no ELF file of this CPU, or has its code beyond 4 GiB.
Result<std::vector<UnwindRow>> read_unwind_rows(const std::string& path);
// The same for an image in memory, as the vdso is.
Result<std::vector<UnwindRow>> read_unwind_rows(std::string image, const std::string& name);

// Of the vdso, the code that the kernel maps into every process.
Result<std::vector<UnwindRow>> read_vdso_unwind_rows();

// The row that covers a place, or nullptr before the first.
const UnwindRow* find_row(const std::vector<UnwindRow>& rows, uint32_t file_offset);

}  // namespace espy::symbols
