// The instruction selector, internal to select*.cc.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/fold_operands.h"
#include "bpf/select.h"

namespace espy::bpf {

class Selector {
 public:
  Selector(const ir::Function& function, const Target& target);
  MachineFunction run();

 private:
  // select.cc: blocks, edges, values
  void select_block(ir::BlockId block);
  void read_inputs();
  void select(ir::ValueId id);
  void select_end(const ir::Instruction& end);
  void select_branch(const ir::Instruction& branch);
  uint32_t edge(const ir::Target& target);
  void assign_parameters(const ir::Target& target);
  void move_all(std::vector<std::pair<Reg, ir::ValueId>> moves);
  void finish_layout();

  uint32_t add_block();
  void enter(uint32_t block);
  MachineInsn& push(MachineInsn insn);
  const ir::Instruction& operator[](ir::ValueId id) const { return function_.values[id]; }

  // Returns the register that receives `id` at its definition.
  Reg result(ir::ValueId id);
  // Returns a register that holds `id`, rematerialized if that is cheaper.
  Reg use(ir::ValueId id);
  // Copies `id` into `dst`, which may be a machine register.
  void put(Reg dst, ir::ValueId id);
  void put_base(Reg dst, const ir::Instruction& base, int64_t offset);
  void put_constant(Reg dst, int64_t value);
  void move(Reg dst, Reg src);
  // Returns a register for an address or large constant that is shared within the block.
  Reg shared(const ir::Instruction& base, int64_t imm);
  std::optional<int64_t> constant(ir::ValueId id) const;
  std::optional<int32_t> small_constant(ir::ValueId id) const;

  // select_scalar.cc
  void select_scalar(ir::ValueId id, const ir::Instruction& instruction);
  void select_binary(ir::ValueId id, uint8_t operation, ir::ValueId a, ir::ValueId b, int16_t offset = 0);
  void select_divide(ir::ValueId id, const ir::Instruction& instruction);
  void divide_by_register(ir::ValueId id, const ir::Instruction& instruction);
  void divide_signed_by_hand(Reg dst, const ir::Instruction& instruction);
  Reg absolute(Reg value, Reg sign);
  Reg sign_of(Reg value);
  void zero_if_zero(Reg dst, Reg divisor);
  void select_sign_extend(Reg dst, unsigned bits);
  void select_byte_swap(Reg dst, unsigned bits);
  void select_compare(Reg dst, const ir::Instruction& instruction);
  bool select_branchless(Reg dst, const ir::Instruction& instruction);
  bool is_scalar(ir::ValueId id) const;
  void alu(uint8_t operation, Reg dst, Reg src, int16_t offset = 0);
  void alu_imm(uint8_t operation, Reg dst, int32_t imm, int16_t offset = 0);
  // Emits a jump to `target` if the condition holds; code that follows is in the block's `next`.
  void jump_if(ir::Condition condition, ir::ValueId a, ir::ValueId b, uint32_t target);

  // select_memory.cc
  struct Operand {  // [base + offset], or [stack object + offset]
    Reg base = kNoReg;
    uint32_t object = kNoObject;
    int32_t offset = 0;
  };
  void select_memory(ir::ValueId id, const ir::Instruction& instruction);
  void select_atomic(ir::ValueId id, const ir::Instruction& instruction);
  void select_call(ir::ValueId id, const ir::Instruction& instruction);
  Operand operand(ir::ValueId address, int64_t offset);
  void load(unsigned width, Reg dst, const Operand& from, bool is_signed = false);
  void store(unsigned width, const Operand& to, Reg src);
  void store_value(unsigned width, const Operand& to, ir::ValueId value);
  void store_constant(unsigned width, const Operand& to, int32_t imm);
  void zero(Operand to, int64_t size_bytes);
  void copy(Operand to, Operand from, int64_t size_bytes);

  const ir::Function& function_;
  const Target& target_;
  Folding folding_;
  MachineFunction out_;
  std::vector<Reg> registers_;   // by value
  std::vector<uint32_t> order_;  // blocks of out_ in layout order
  uint32_t block_ = 0;
  source::Span span_;
  std::map<std::tuple<ir::Op, uint32_t, int64_t>, Reg> shared_;  // of the current block
};

}  // namespace espy::bpf
