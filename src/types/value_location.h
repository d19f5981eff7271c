// Where a value of a probed program lies, as debug information tells: in registers, in memory, in parts of both, or
// nowhere any more, but to be computed from what is there.
//
// A place is made by `symbols`, which reads DWARF, and followed by `lower`, which knows nothing of DWARF: it runs the
// steps at compile time over values of its own, and what is left on top is the address, or the value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace espy::types {

// One step of a stack machine. All values are 64 bits wide; comparisons give 1 or 0.
struct LocationOp {
  enum class Code : uint8_t {
    kRegister,       // pushes the register at offset `operand` of pt_regs
    kConstant,       // pushes `operand`
    kThreadPointer,  // pushes what the thread's own variables are counted from: task_struct::thread.fsbase
    kLoadBias,       // pushes what to add to linked addresses; `operand` is that of the probed instruction
    kRead,  // pops an address, pushes `operand` bytes (1, 2, 4, 8) of user memory from there, as an unsigned number
    kPick,  // pushes a copy of what lies `operand` below the top
    kDrop,
    kSwap,
    kRotate,         // the top goes below the two under it
    kReturnAddress,  // pops where on the stack it is, pushes it, whoever traces the return
    kByCaller,       // pops where the function returns to, as linked; pushes what the caller that is there says:
                     // `callers[operand]` of the piece
    kExtendSign,     // of the low `operand` bytes
    kExtendZero,
    kAdd,  // two from the stack, the left one below the right one; and so on
    kSub,
    kMul,
    kDivSigned,
    kDivUnsigned,
    kMod,  // unsigned
    kAnd,
    kOr,
    kXor,
    kShl,
    kShr,
    kSar,
    kNeg,  // of one
    kNot,
    kEqual,
    kNotEqual,
    kLessSigned,
    kLessUnsigned,
  };
  Code op = Code::kConstant;
  int64_t operand = 0;
  bool operator==(const LocationOp&) const = default;
};

// What an argument was is known to the caller alone, once the function has used its register for something else.
struct CallSite {
  uint64_t return_address = 0;  // as linked
  std::vector<LocationOp> steps = {};
  bool operator==(const CallSite&) const = default;
};

struct LocationPiece {
  enum class Kind : uint8_t {
    kMemory,   // in user memory, at the address that the steps give
    kValue,    // the low bytes of what the steps give
    kBytes,    // known: `bytes`
    kNothing,  // nobody knows: zeros
  };
  Kind kind = Kind::kNothing;
  uint32_t size_bytes = 0;
  std::vector<LocationOp> steps = {};
  std::string bytes = {};
  std::vector<std::vector<CallSite>> callers = {};  // what kByCaller chooses from; a value for no other caller
  bool operator==(const LocationPiece&) const = default;
};

// The pieces of a value in order of memory; nearly always it is one.
struct ValueLocation {
  std::vector<LocationPiece> pieces;
  bool operator==(const ValueLocation&) const = default;
};

using RegisterNamer = std::function<std::string(uint32_t offset_bytes)>;

// "di", "[sp+24]", "[bp-20], 4 bytes of dx", "= 5", "= 5 or bx (by caller)"; `register_name` names the register at an
// offset of pt_regs.
std::string to_string(const ValueLocation& place, const RegisterNamer& register_name);

}  // namespace espy::types
