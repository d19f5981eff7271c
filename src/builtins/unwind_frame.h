// One step of a walk over a user stack: the function that bpf_loop calls for each frame. unwind.cc has the story.
#pragma once

#include "lower/lowering.h"

namespace espy::builtins {

constexpr int64_t kMapleNodeBytes = 256;

// What a walk knows, in scratch memory. Offsets in bytes. What lies behind kPerWalk is there from the walk before.
struct UnwindState {
  enum : int64_t {
    kIp = 0,
    kSp = 8,
    kFp = 16,
    kIsCaller = 24,  // 1: ip is a return address, so the code that matters is before it
    kHash = 32,
    kMissing = 40,  // program::UnwindFileKey of the first file without a table
    kMissingPc = 56,
    kHasNew = 64,   // 1: a mapping was met that the walk before did not know
    kPerWalk = 72,  // what is zero at first
    kVdso = 72,
    kRoot = 80,  // of the maple tree
    kSequence = 88,
    kCurrent = 96,  // which of kMaps
    kNext = 104,    // to be used anew
    kWords = 112,   // what was read of the stack, up to 7
    kMaps = 168,
    kNode = kMaps + 4 * 64,                 // of the tree, then the vm_area_struct
    kFrameCount = kNode + kMapleNodeBytes,  // here the value for `stacks` starts
    kFrames = kFrameCount + 8,
  };
};

// A mapping that the walk has met.
struct UnwindMap {
  enum : int64_t {
    kStart = 0,
    kSize = 8,   // 0: none
    kBias = 16,  // address + this = offset in the file
    kFile = 24,  // program::UnwindFile
    kIsNew = 40,
    kKey = 48,  // program::UnwindFileKey, where kIsNew
  };
  static constexpr int64_t kCount = 4, kShift = 6;
};

// How many cells the tables have room for: a power of two, so that `and` bounds an index for the verifier.
uint64_t unwind_cell_count(const lower::Lowering& lowering);

// Where a member of a kernel's struct is, in bytes; -1: there is none.
int64_t member_offset(kernel::Kernel& kernel, types::Types& types, std::string_view tag, std::string_view name);

// Whether the kernel keeps a process' mappings where the step looks for them.
bool knows_mappings(kernel::Kernel& kernel, types::Types& types);

// Writes the function, (index, address of the state's address): takes down the frame that the state is at, one of at
// most `frames`, and moves the state to the caller's; gives 1 where there is none.
void write_unwind_step(lower::Lowering& lowering, uint32_t frames);

}  // namespace espy::builtins
