// The parts of the instruction selector: arithmetic, memory and calls, control flow.
#pragma once

#include <cstdint>
#include <optional>

#include "bpf/code_builder.h"

namespace espy::bpf {

// Arithmetic, compares and conditional jumps (select_scalar.cc).
class ScalarSelector {
 public:
  explicit ScalarSelector(CodeBuilder& code) : code_(code) {}

  void select(ir::ValueId id, const ir::Instruction& instruction);
  void sign_extend(Reg dst, unsigned bits);
  // Emits a jump to `target` if the condition holds; code that follows is in the block's `next`.
  void jump_if(ir::Condition condition, ir::ValueId a, ir::ValueId b, uint32_t target);

 private:
  void binary(ir::ValueId id, uint8_t operation, ir::ValueId a, ir::ValueId b, int16_t offset = 0);
  void divide(ir::ValueId id, const ir::Instruction& instruction);
  void divide_signed_by_hand(Reg dst, const ir::Instruction& instruction);
  Reg absolute(Reg value, Reg sign);
  Reg sign_of(Reg value);
  void zero_if_zero(Reg dst, Reg divisor);
  void byte_swap(Reg dst, unsigned bits);
  void compare(Reg dst, const ir::Instruction& instruction);
  bool branchless(Reg dst, const ir::Instruction& instruction);
  bool is_scalar(ir::ValueId id) const;

  CodeBuilder& code_;
};

// Memory accesses and calls (select_memory.cc).
class MemorySelector {
 public:
  MemorySelector(CodeBuilder& code, ScalarSelector& scalars) : code_(code), scalars_(scalars) {}

  void select(ir::ValueId id, const ir::Instruction& instruction);
  void call(ir::ValueId id, const ir::Instruction& instruction);

 private:
  struct Operand {  // [base + offset], or [stack object + offset]
    Reg base = kNoReg;
    uint32_t object = kNoObject;
    int32_t offset = 0;
  };
  Operand operand(ir::ValueId address, int64_t offset);
  void load(unsigned width, Reg dst, const Operand& from, bool is_signed = false);
  void store(unsigned width, const Operand& to, Reg src);
  void store_value(unsigned width, const Operand& to, ir::ValueId value);
  void store_constant(unsigned width, const Operand& to, int32_t imm);
  void zero(Operand to, int64_t size_bytes);
  void copy(Operand to, Operand from, int64_t size_bytes);
  void atomic(ir::ValueId id, const ir::Instruction& instruction);

  CodeBuilder& code_;
  ScalarSelector& scalars_;
};

// Blocks, edges, and the order of selection (select.cc).
class Selector {
 public:
  Selector(const ir::Function& function, const Target& target) : function_(function), code_(function, target) {}
  MachineFunction run();

 private:
  void select_block(ir::BlockId block);
  void read_inputs();
  void select(ir::ValueId id);
  void select_end(const ir::Instruction& end);
  void select_branch(const ir::Instruction& branch);
  uint32_t edge(const ir::Target& target);
  void assign_parameters(const ir::Target& target);

  const ir::Function& function_;
  CodeBuilder code_;
  const Folding& folding_ = code_.folding();
  ScalarSelector scalars_{code_};
  MemorySelector memory_{code_, scalars_};
};

}  // namespace espy::bpf
