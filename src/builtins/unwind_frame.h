// One step of unwinding a user stack: a function that is called for each frame. For an overview, see unwind.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lower/lowering.h"
#include "lower/mappings.h"

namespace espy::builtins {

using lower::member_offset;

// The part of the stack that is read at a time.
constexpr int64_t kWindowBytes = 512;

// The state of unwinding, in scratch memory, as offsets in bytes. Members from kPerWalk on keep their values from one
// stack to the next.
struct UnwindState {
  enum : int64_t {
    kIp = 0,
    kSp = 8,
    kFp = 16,
    kIsCaller = 24,  // 1: ip is a return address, so the call is in front of it
    kHash = 32,
    kMissing = 40,    // program::UnwindFileKey: the first file without a table
    kMissingIn = 64,  // the process
    kMissingPc = 72,
    kHasNew = 80,         // 1: an unknown mapping was found
    kLink = 88,           // the link register, if calls use one; as of the interrupted code
    kIsSpUnknown = 96,    // 1: sp is only a lower bound, since a frame was followed by its frame pointer alone
    kWindowStart = 104,   // the address that kWindow was read from
    kWindowStarts = 112,  // how many addresses from there on kWindow has two words of
    kTag = 120,           // of the last frame: program::CodeTag, in the highest byte
    kPerWalk = 128,       // members before this are zeroed for each stack
    kVdso = 128,
    kRoot = 136,  // of the tree of mappings
    kSequence = 144,
    kCurrent = 152,     // index in kMaps
    kNext = 160,        // the next index in kMaps to replace
    kPid = 168,         // u32: whose mappings are cached
    kGeneration = 172,  // of the mappings: u32, changes when they do
    kWords = 176,       // words that were read, up to 7
    kMaps = 232,
    kRules = kMaps + 4 * 128,
    kWindow = kRules + 256 * 16,          // a piece of the stack, then two words of which no byte is used
    kNode = kWindow + kWindowBytes + 16,  // of lower::MappingReader
    kFrameCount = kNode + lower::MappingReader::kMemoryBytes,  // start of the value that is stored in `stacks`
    kFrames = kFrameCount + 8,
  };
};

// A cached mapping.
struct UnwindMap {
  enum : int64_t {
    kStart = 0,
    kSize = 8,   // 0: unused
    kBias = 16,  // file offset = address + bias
    kFile = 24,  // program::UnwindFile
    kIsNew = 40,
    kKey = 48,  // program::UnwindFileKey, if kIsNew
    kTag = 72,  // program::CodeTag, in the highest byte
  };
  static constexpr int64_t kCount = 4, kShift = 7;
};

// The last rule found for a code address. It holds as long as the mappings are of the same generation.
struct UnwindRule {
  enum : int64_t {
    kAddress = 0,     // with its program::CodeTag
    kGeneration = 8,  // u32
    kRule = 12,       // symbols::FrameRule
  };
  static constexpr int64_t kCountShift = 8, kShift = 4;
};

// Emits the body of the function, whose first parameter is the number of the frame. It stores the current frame, if its
// number is below `frames`, and advances the state to the caller's frame. Returns 1 if there is no caller.
void write_unwind_step(lower::Lowering& lowering, uint32_t frames, ir::ValueId state);

// ---- Unwinding of user stacks in BPF, by tables instead of frame pointers (unwind_stack.cc).

// Returns why a program on this kernel cannot find a task's mappings and registers; "" if it can.
std::string cannot_unwind(kernel::Kernel& kernel, types::Types& types);

// Emits the capture of the current task's user stack: 16 bytes at `destination`, a value of the stack type `type`
// (program/layout.h). Runs `otherwise` as long as user space has not made the first tables.
void lower_unwound_stack(lower::Lowering& lowering, types::TypeId type, ir::ValueId pid, ir::ValueId destination,
                         source::Span span, const std::function<void()>& otherwise);

}  // namespace espy::builtins
