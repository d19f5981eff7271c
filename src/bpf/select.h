// Instruction selection: translates a function of IR to BPF instructions on virtual registers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "bpf/emit.h"
#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::bpf {

MachineFunction select(const ir::Function& function, const Target& target);

// ---- Values that need no register: addresses that fold into an instruction's offset, compares that fold into a
// branch, values that are cheaper to rematerialize than to keep, and unused values.

// `base` + `offset`, with all constants of the address folded into `offset`.
struct FoldedAddress {
  ir::ValueId base;
  int64_t offset = 0;
};
FoldedAddress fold_address(const ir::Function& function, ir::ValueId address, int64_t offset);

// Returns true if the offset fits into the 16 bits of a memory operand, with 512 bytes to spare for multi-word
// accesses.
constexpr bool fits_offset(int64_t offset) { return offset >= -32768 && offset <= 32767 - 512; }

class Folding {
 public:
  explicit Folding(const ir::Function& function);

  // Returns true if the value must be computed into a register at its definition.
  bool is_needed(ir::ValueId value) const { return uses_[value.index] > 0; }
  // Returns the number of uses by selected instructions.
  uint32_t uses(ir::ValueId value) const { return uses_[value.index]; }
  // Returns the compare whose result only this branch tests, so that the branch can do the comparison; null if there is
  // none.
  const ir::Instruction* compare_of(const ir::Instruction& branch) const;

 private:
  void use(ir::ValueId value);
  void use_operands(const ir::Instruction& instruction);

  const ir::Function& function_;
  std::vector<uint32_t> uses_;
  std::vector<uint32_t> raw_uses_;
  std::vector<std::vector<ir::ValueId>> incoming_;  // by block parameter: the arguments of the edges
  std::vector<ir::ValueId> todo_;
};

// ---- Machine code under construction, and where it finds the values of IR: internal to the instruction selector.

class CodeBuilder {
 public:
  CodeBuilder(const ir::Function& function, const Target& target);

  const ir::Function& function() const { return function_; }
  const Target& target() const { return target_; }
  const Folding& folding() const { return folding_; }

  // ---- Blocks. A block of IR starts in the machine block of the same number; further blocks have higher numbers.
  uint32_t add_block();
  // Appends the block to the layout; later pushes go there.
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

// ---- The parts of the instruction selector: arithmetic, memory and calls, control flow.

// Arithmetic, compares and conditional jumps.
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

// Memory accesses and calls.
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
