// The location of a value of a probed program according to debug information: registers, memory, pieces of both, or a
// computation.
//
// `symbols` makes locations from DWARF. `lower` evaluates their operations symbolically, at compile time, over IR
// values; the top of the stack is the address of the value, or the value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace espy::types {

// One operation of a stack machine with 64-bit values. Comparisons yield 1 or 0.
struct LocationOp {
  enum class Code : uint8_t {
    kRegister,       // pushes the register at offset `operand` of pt_regs
    kConstant,       // pushes `operand`
    kThreadPointer,  // pushes the thread pointer, the base of thread-local variables
    kLoadBias,       // pushes the load bias; `operand` is the linked address of the probed instruction
    kRead,           // pops an address, pushes the `operand` bytes (1, 2, 4, 8) of user memory there, zero-extended
    kPick,           // pushes a copy of the entry `operand` below the top
    kDrop,
    kSwap,
    kRotate,         // moves the top below the two entries under it
    kReturnAddress,  // pops the return address as the function has it, then the stack pointer at its entry; pushes the
                     // return address, also where a return probe has replaced it
    kByCaller,       // pops the linked return address, pushes the value that the call site there gives: one of
                     // `callers[operand]` of the piece
    kExtendSign,     // extends the low `operand` bytes
    kExtendZero,
    kAdd,  // binary operations pop the right operand, then the left one
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
    kNeg,  // unary
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

// The value of an argument according to one call of the function, for use after the function has reused the argument's
// register (DWARF 5, 3.4.2: call site parameters).
struct CallSite {
  uint64_t return_address = 0;  // as linked
  std::vector<LocationOp> steps = {};
  bool operator==(const CallSite&) const = default;
};

struct LocationPiece {
  enum class Kind : uint8_t {
    kMemory,   // user memory at the computed address
    kValue,    // the low bytes of the computed value
    kBytes,    // the constant `bytes`
    kNothing,  // unavailable: read as zeros
  };
  Kind kind = Kind::kNothing;
  uint32_t size_bytes = 0;
  std::vector<LocationOp> steps = {};
  std::string bytes = {};
  std::vector<std::vector<CallSite>> callers = {};  // of kByCaller; a caller that is not listed yields no value
  bool operator==(const LocationPiece&) const = default;
};

// The pieces of a value, in memory order; most values have one.
struct ValueLocation {
  std::vector<LocationPiece> pieces;
  bool operator==(const ValueLocation&) const = default;
};

using RegisterNamer = std::function<std::string(uint32_t offset_bytes)>;

// Returns a location as text: "di", "[sp+24]", "[bp-20], 4 bytes of dx", "= 5", "= 5 or bx (by caller)".
// `register_name` names the register at an offset of pt_regs.
std::string to_string(const ValueLocation& place, const RegisterNamer& register_name);

}  // namespace espy::types
