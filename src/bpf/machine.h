// Machine code before it is bytes: BPF instructions on virtual registers, in blocks.
//
// `select` writes it, `allocate` replaces the virtual registers by r0-r9, `frame` gives stack objects their place,
// `encode` makes bytes of it. It is not SSA: block parameters are registers assigned on every edge.
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
  uint8_t arguments = 0;  // calls: how many of r1-r5 are read
  Reg dst = kNoReg;
  Reg src = kNoReg;
  int32_t offset = 0;
  int64_t imm = 0;
  uint32_t object = kNoObject;  // stack object: memory operands address it instead of a register; add uses its offset
  uint32_t target = kNoBlock;   // conditional jumps
  program::MapId map = {};
  ir::FunctionId function = {};
  source::Span span = {};
};

// Ends in a conditional jump, kExit, or neither; then goes on to `next`.
struct MachineBlock {
  std::vector<MachineInsn> insns;
  uint32_t next = kNoBlock;
  uint32_t loop_depth = 0;
};

// Something on the stack. The first objects are the function's slots, the rest are spilled registers.
struct StackObject {
  uint32_t size_bytes = 8;
  uint32_t align_bytes = 8;
  int32_t offset = 0;  // from the frame pointer; negative
};

// How to make a register's value again from nothing.
struct VirtualRegister {
  bool is_rematerialised = false;
  bool is_unspillable = false;  // lives for an instruction or two around a spill
  MachineInsn recipe = {};      // dst is left open
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

// What an instruction does with its two register fields. Calls, kExit and compare-exchange also use machine registers
// that they do not name: see `for_each_access`.
struct Access {
  bool reads_dst = false, writes_dst = false, reads_src = false, writes_src = false;
};
Access access(const MachineInsn& insn);

bool is_call(const MachineInsn& insn);
bool is_conditional_jump(const MachineInsn& insn);
// A plain 64-bit copy of a register.
bool is_move(const MachineInsn& insn);
bool is_compare_exchange(const MachineInsn& insn);

// Calls `read(reg)` and `write(reg)` for every register, named or implied; a call writes all of r0-r5.
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

// Blocks that control may reach from `block`: its jump's target, then `next`.
template <class Visit>
void for_each_successor(const MachineBlock& block, Visit visit) {
  if (!block.insns.empty() && block.insns.back().target != kNoBlock) visit(block.insns.back().target);
  if (block.next != kNoBlock) visit(block.next);
}

}  // namespace espy::bpf
