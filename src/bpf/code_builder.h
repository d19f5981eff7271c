// Machine code under construction, and where it finds the values of IR: internal to the instruction selector.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/fold_operands.h"
#include "bpf/select.h"

namespace espy::bpf {

class CodeBuilder {
 public:
  CodeBuilder(const ir::Function& function, const Target& target);

  const ir::Function& function() const { return function_; }
  const Target& target() const { return target_; }
  const Folding& folding() const { return folding_; }

  // ---- Blocks. A block of IR starts in the machine block of the same number; further blocks have higher numbers.
  uint32_t add_block();
  // Appends the block to the layout; what is pushed goes there from now on.
  void enter(uint32_t block);
  uint32_t block() const { return block_; }
  void set_next(uint32_t block, uint32_t next) { out_.blocks[block].next = next; }
  // Sets the target of the jump that is the last instruction of `block`.
  void set_target(uint32_t block, uint32_t target) { out_.blocks[block].insns.back().target = target; }
  // Puts the blocks in the order of the layout and returns the function; the builder is empty then.
  MachineFunction finish();

  // ---- Instructions
  void set_span(source::Span span) { span_ = span; }
  MachineInsn& push(MachineInsn insn);
  void alu(uint8_t operation, Reg dst, Reg src, int16_t offset = 0);
  void alu_imm(uint8_t operation, Reg dst, int32_t imm, int16_t offset = 0);
  void move(Reg dst, Reg src);
  void put_constant(Reg dst, int64_t value);

  // ---- Values
  Reg new_register() { return out_.add_register(); }
  // Returns the register that receives `id` at its definition.
  Reg result(ir::ValueId id);
  // Returns a register that holds `id`, rematerialized if that is cheaper.
  Reg use(ir::ValueId id);
  // Copies `id` into `dst`, which may be a machine register.
  void put(Reg dst, ir::ValueId id);
  // The same for several at once: each register is set after the last value that reads it.
  void move_all(std::vector<std::pair<Reg, ir::ValueId>> moves);
  // Returns a register for an address or large constant that is shared within the block.
  Reg shared(const ir::Instruction& base, int64_t imm);
  std::optional<int64_t> constant(ir::ValueId id) const;
  std::optional<int32_t> small_constant(ir::ValueId id) const;

 private:
  void put_base(Reg dst, const ir::Instruction& base, int64_t offset);

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
