// Machine code: BPF instructions on virtual registers, in blocks.
//
// `select` creates it, `allocate` replaces virtual registers by r0-r9, `stack_layout` assigns offsets to stack objects,
// `encode` turns it into bytes. It is not in SSA form: block parameters are registers assigned on every edge.
#pragma once

#include <cstdint>
#include <vector>

#include "bpf/encoding.h"
#include "ir/ir.h"

namespace espy::bpf {

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
