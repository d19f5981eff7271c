// Machine code: BPF instructions with their encoding, on virtual registers.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace espy::bpf {

// ---- The encoding of BPF instructions: one constant per field, with the names of the kernel's documentation
// (Documentation/bpf/standardization/instruction-set.rst).

// Low three bits: the class.
inline constexpr uint8_t kLd = 0x00, kLdx = 0x01, kSt = 0x02, kStx = 0x03, kAlu32 = 0x04, kJmp = 0x05, kJmp32 = 0x06,
                         kAlu64 = 0x07;
constexpr uint8_t class_of(uint8_t code) { return code & 0x07; }

// Arithmetic and jumps: the source of the second operand.
inline constexpr uint8_t kImm = 0x00, kReg = 0x08;

// Arithmetic: high four bits.
inline constexpr uint8_t kAdd = 0x00, kSub = 0x10, kMul = 0x20, kDiv = 0x30, kOr = 0x40, kAnd = 0x50, kLsh = 0x60,
                         kRsh = 0x70, kNeg = 0x80, kMod = 0x90, kXor = 0xa0, kMov = 0xb0, kArsh = 0xc0, kEnd = 0xd0;

// Jumps: high four bits.
inline constexpr uint8_t kJa = 0x00, kJeq = 0x10, kJgt = 0x20, kJge = 0x30, kJset = 0x40, kJne = 0x50, kJsgt = 0x60,
                         kJsge = 0x70, kCall = 0x80, kExit = 0x90, kJlt = 0xa0, kJle = 0xb0, kJslt = 0xc0, kJsle = 0xd0,
                         kJcond = 0xe0;
constexpr uint8_t operation_of(uint8_t code) { return code & 0xf0; }

// Memory: bits 3-4 the size, bits 5-7 the mode.
inline constexpr uint8_t kWord = 0x00, kHalf = 0x08, kByte = 0x10, kDouble = 0x18;
inline constexpr uint8_t kModeImm = 0x00, kModeMem = 0x60, kModeMemSigned = 0x80, kModeAtomic = 0xc0;
constexpr uint8_t size_of(uint8_t code) { return code & 0x18; }
constexpr uint8_t mode_of(uint8_t code) { return code & 0xe0; }

constexpr uint8_t size_code(unsigned bytes) {
  return bytes == 1 ? kByte : bytes == 2 ? kHalf : bytes == 4 ? kWord : kDouble;
}
constexpr unsigned size_bytes(uint8_t code) {
  return size_of(code) == kByte ? 1 : size_of(code) == kHalf ? 2 : size_of(code) == kWord ? 4 : 8;
}

// Atomic operations, encoded in imm; with kFetch the source register receives the old value.
inline constexpr int32_t kFetch = 0x01, kAtomicAdd = 0x00, kAtomicOr = 0x40, kAtomicAnd = 0x50, kAtomicXor = 0xa0,
                         kXchg = 0xe0 | kFetch, kCmpxchg = 0xf0 | kFetch, kLoadAcquire = 0x100, kStoreRelease = 0x110;

inline constexpr uint8_t kLdImm64 = kLd | kDouble | kModeImm;  // takes two instructions

// Source register field of kLdImm64: the meaning of imm.
inline constexpr uint8_t kPseudoMapFd = 1, kPseudoMapValue = 2, kPseudoBtfId = 3, kPseudoFunction = 4,
                         kPseudoMapIndex = 5, kPseudoMapIndexValue = 6;
// Source register field of a call: the kind of callee.
inline constexpr uint8_t kCallHelper = 0, kCallFunction = 1, kCallKfunc = 2;

inline constexpr int32_t kStackLimitBytes = 512;

// ---- Machine code: BPF instructions on virtual registers, in blocks.
//
// `select` creates it, `allocate` replaces virtual registers by r0-r9, `stack_layout` assigns offsets to stack objects,
// `encode` turns it into bytes. It is not in SSA form: block parameters are registers assigned on every edge.

using Reg = uint32_t;
inline constexpr Reg kFramePointer = 10;
inline constexpr Reg kMachineRegisters = 11;  // virtual registers are numbered from here
inline constexpr Reg kNoReg = ~Reg{0};
constexpr bool is_virtual(Reg reg) { return reg >= kMachineRegisters && reg != kNoReg; }

inline constexpr uint32_t kNoBlock = ~uint32_t{0};
inline constexpr uint32_t kNoObject = ~uint32_t{0};

struct MachineInsn {
  uint8_t code = 0;
  uint8_t pseudo = 0;     // source field of kLdImm64 and calls
  uint8_t arguments = 0;  // calls: the number of argument registers, from r1 on
  Reg dst = kNoReg;
  Reg src = kNoReg;
  int32_t offset = 0;
  int64_t imm = 0;
  uint32_t object = kNoObject;  // stack object: replaces the base register of a memory operand; an add adds its offset
  uint32_t target = kNoBlock;   // conditional jumps
  program::MapId map = {};
  ir::FunctionId function = {};
  source::Span span = {};
};

// A block ends with a conditional jump, kExit, or neither, and continues at `next`.
struct MachineBlock {
  std::vector<MachineInsn> insns;
  uint32_t next = kNoBlock;
  uint32_t loop_depth = 0;
};

// An object on the stack: first the slots of the function, then spilled registers.
struct StackObject {
  uint32_t size_bytes = 8;
  uint32_t align_bytes = 8;
  int32_t offset = 0;  // from the frame pointer; negative
};

// Allocation properties of a virtual register.
struct VirtualRegister {
  bool is_rematerialised = false;
  bool is_unspillable = false;  // short-lived, around a spill
  MachineInsn recipe = {};      // if rematerialised: the instruction that computes it; dst is unset
};

struct MachineFunction {
  std::vector<MachineBlock> blocks;  // in layout order; the first is the entry
  std::vector<StackObject> objects;
  uint32_t slot_count = 0;
  std::vector<VirtualRegister> registers;  // index: number - kMachineRegisters
  uint32_t stack_bytes = 0;

  Reg add_register() {
    registers.emplace_back();
    return static_cast<Reg>(registers.size() - 1) + kMachineRegisters;
  }
  VirtualRegister& operator[](Reg reg) { return registers[reg - kMachineRegisters]; }
  const VirtualRegister& operator[](Reg reg) const { return registers[reg - kMachineRegisters]; }
  Reg register_end() const { return static_cast<Reg>(registers.size()) + kMachineRegisters; }
};

// The use of the two register fields of an instruction. Calls, kExit and compare-exchange also access machine registers
// implicitly: see `for_each_access`.
struct Access {
  bool reads_dst = false, writes_dst = false, reads_src = false, writes_src = false;
};
Access access(const MachineInsn& insn);

bool is_call(const MachineInsn& insn);
bool is_conditional_jump(const MachineInsn& insn);
bool is_ordered_comparison(const MachineInsn& insn);  // a conditional jump by <, <=, > or >=
// Returns true for a 64-bit copy of a register.
bool is_move(const MachineInsn& insn);
bool is_compare_exchange(const MachineInsn& insn);

// Calls `read(reg)` and `write(reg)` for every accessed register, explicit or implicit; a call writes r0-r5.
template <class Read, class Write>
void for_each_access(const MachineInsn& insn, Read read, Write write) {
  Access a = access(insn);
  if (a.reads_dst) read(insn.dst);
  if (a.reads_src) read(insn.src);
  if (is_call(insn)) {
    for (Reg reg = 1; reg <= insn.arguments; ++reg) read(reg);
    for (Reg reg = 0; reg <= 5; ++reg) write(reg);
  }
  if (is_compare_exchange(insn)) {
    read(Reg{0});
    write(Reg{0});
  }
  if (insn.code == (kJmp | kExit)) read(Reg{0});
  if (a.writes_dst) write(insn.dst);
  if (a.writes_src) write(insn.src);
}

// Calls `visit` for the successors of `block`: the target of its jump, then `next`.
template <class Visit>
void for_each_successor(const MachineBlock& block, Visit visit) {
  if (!block.insns.empty() && block.insns.back().target != kNoBlock) visit(block.insns.back().target);
  if (block.next != kNoBlock) visit(block.next);
}

}  // namespace espy::bpf
