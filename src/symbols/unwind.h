// Unwind tables: the rules of .eh_frame and of Go's function table to find the caller of a frame, as rows sorted by
// file offset.
//
// A row is valid up to the next one, and fits a word: a BPF program searches the table (builtins/unwind_stack.cc),
// which runtime/unwind_tables.cc loads. Its registers are registers of the CPU (kernel/arch).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/arch/arch.h"

namespace espy::symbols {

class ElfFile;

// How to compute the canonical frame address (CFA): the stack pointer in the caller before the call pushed the return
// address. The BPF program depends on the values.
enum class FrameBase : uint8_t {
  kUnknown = 0,       // no entry covers the code, or its rule cannot be encoded
  kEnd = 1,           // the outermost frame: _start, the first function of a thread
  kStackPointer = 2,  // SP + offset
  kFramePointer = 3,  // FP + offset
  kLoadFromStackPointer =
      4,  // *(SP + offset) + 8: after switching or realigning the stack, with the old SP saved there
  kLoadFromFramePointer = 5,  // *(FP + offset)
  kPlt = 6,                   // .plt: SP + 8, or SP + 16 in the end of an entry
  kSignalFrame = 7,           // the signal trampoline: registers are in a sigcontext at SP
  kSavedLink = 8,             // SP + offset; only the link register was saved, and FP is unchanged
};

// A rule in 32 bits: base:4, location of the caller's FP:8, offset:20 (signed, in units of 8 bytes).
//
// If calls push the return address, it is right below the CFA. If they leave it in the link register, it is in the word
// above the saved FP, because functions save the two together. It is still in the register if FP is kSame. With
// kSavedLink, the location has the return address. Functions with a link register save at one end of their frame, so
// locations are relative to either.
struct FrameRule {
  static constexpr uint32_t kSame = 0;              // FP: unchanged
  static constexpr uint32_t kUnrecoverable = 254;   // FP: cannot be recovered; if calls push the return address
  static constexpr uint32_t kAboveBase = 128;       // FP: 128 + N: at SP or FP + 8 * N; if calls use a link register
  static constexpr uint32_t kAtFramePointer = 255;  // FP: at *FP; else N: at CFA - 8 * N
  static constexpr int64_t kMaxOffsetBytes = (int64_t{1} << 19) * 8 - 8;

  uint32_t bits = 0;

  static FrameRule make(FrameBase base, int64_t offset_bytes, uint32_t frame_pointer) {
    const auto words = static_cast<uint32_t>(offset_bytes / 8);
    return {static_cast<uint32_t>(base) | frame_pointer << 4 | words << 12};
  }
  FrameBase base() const { return static_cast<FrameBase>(bits & 15); }
  uint32_t frame_pointer() const { return bits >> 4 & 255; }
  int64_t offset_bytes() const { return (static_cast<int32_t>(bits) >> 12) * int64_t{8}; }
  bool operator==(const FrameRule&) const = default;
};

struct UnwindRow {
  uint32_t file_offset = 0;
  FrameRule rule;
  bool operator==(const UnwindRow&) const = default;
};

// Returns all rows of a file; empty if it has neither .eh_frame nor such a table (assembly). Fails if the file cannot
// be opened, is not an ELF file of this CPU, or has code beyond 4 GiB.
Result<std::vector<UnwindRow>> read_unwind_rows(const std::string& path,
                                                const kernel::Arch& arch = kernel::host_arch());
// The same for a file that is open.
Result<std::vector<UnwindRow>> read_unwind_rows(const ElfFile& file, const kernel::Arch& arch = kernel::host_arch());
// The same for an image in memory, such as the vdso.
Result<std::vector<UnwindRow>> read_unwind_rows(std::string image, const std::string& name,
                                                const kernel::Arch& arch = kernel::host_arch());

// The same for the vdso of the own process.
Result<std::vector<UnwindRow>> read_vdso_unwind_rows(const kernel::Arch& arch);

// Returns the row that covers a file offset; null before the first.
const UnwindRow* find_row(const std::vector<UnwindRow>& rows, uint32_t file_offset);

// ---- The rules of call frame information at one address, and their encoding as a FrameRule. Internal to
// symbols/unwind.

// How to recover the caller's value of a register.
struct RegisterRule {
  enum class Kind : uint8_t { kSame, kUndefined, kAtCfa, kAtExpression, kOther } kind = Kind::kSame;
  int64_t offset_bytes = 0;  // kAtCfa
  std::string_view expression = {};
};

// The rules for the code at one address. Expressions are views into .eh_frame.
struct CfiRules {
  bool is_expression = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  std::string_view cfa_expression = {};
  RegisterRule frame_pointer = {};
  RegisterRule return_address = {};
};

// Returns the rule in 32 bits; FrameBase::kUnknown if it has no such form.
FrameRule encode_rules(const kernel::Arch& arch, const CfiRules& rules, bool is_signal_frame);

// ---- Rows of unwind tables for Go, whose compiler writes no .eh_frame. Internal to symbols/unwind.

class ElfImage;

// Appends the rows of the functions in Go's function table, and the file offsets at which their code ends. Adds none if
// the file is not Go's, or by Go before 1.18: the table does not say there where stacks end.
void append_go_rows(const ElfImage& image, const kernel::Arch& arch, std::vector<UnwindRow>& rows,
                    std::vector<uint32_t>& ends);

}  // namespace espy::symbols
