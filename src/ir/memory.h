// Alias analysis by the rules of docs/ir.md, for passes that move or remove memory accesses.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace espy::ir {

enum class Base : uint8_t {
  kSlot,
  kMap,
  kOther
};  // a stack object; the only element of an array map; any other pointer

struct Location {
  Base base = Base::kOther;
  uint32_t id = 0;       // of the slot, the map, or the pointer's value
  int64_t offset = 0;    // from the base, in bytes
  bool is_exact = true;  // false: unknown offset in the object
  bool is_slot() const { return base == Base::kSlot; }
  bool has_same_base(const Location& other) const { return base == other.base && id == other.id; }
};

// The locations of all values of a function, and the private stack objects: those whose address is only used for
// accesses and call arguments, so that no other pointer refers to them.
class Memory {
 public:
  explicit Memory(const Function& function);
  // Returns the location of an access through `address` with an immediate offset.
  Location at(ValueId address, int64_t offset = 0) const {
    Location location = locations_[address.index];
    location.offset += offset;
    return location;
  }
  bool is_private(SlotId slot) const { return is_private_[slot.index]; }
  bool is_private(const Location& location) const { return location.is_slot() && is_private_[location.id]; }

  // Calls `visit(Location, size_bytes)` for each location that the instruction may write through an operand; size 0 is
  // unknown. Returns true if it may also write any other memory that is not private.
  template <class Visit>
  bool for_each_write(const Instruction& instruction, Visit visit) const;
  // The same for reads.
  template <class Visit>
  bool for_each_read(const Instruction& instruction, Visit visit) const;

 private:
  void locate(const Function& function, ValueId id);
  void find_escapes(const Instruction& instruction);

  std::vector<Location> locations_;  // by value
  std::vector<bool> is_private_;     // by slot
};

bool is_atomic(Op op);
// Returns true for loads, stores and atomic operations, which access `width` bytes at their first operand + imm.
bool accesses_memory(Op op);
bool is_call(Op op);
// Returns false for helpers that only read through their pointer arguments.
bool writes_arguments(const Instruction& call);
// Returns false for helpers that access no memory but that of their arguments.
bool writes_elsewhere(const Instruction& call);

template <class Visit>
bool Memory::for_each_write(const Instruction& instruction, Visit visit) const {
  if (instruction.op == Op::k_store || instruction.op == Op::k_store_release || is_atomic(instruction.op)) {
    visit(at(instruction.operands[0], instruction.imm), static_cast<uint32_t>(instruction.width));
  } else if (instruction.op == Op::k_zero || instruction.op == Op::k_copy) {
    visit(at(instruction.operands[0]), static_cast<uint32_t>(instruction.imm));
  } else if (is_call(instruction.op)) {
    if (writes_arguments(instruction))
      for (ValueId argument : instruction.operands) visit(at(argument), 0u);
    return writes_elsewhere(instruction);
  }
  return false;
}

template <class Visit>
bool Memory::for_each_read(const Instruction& instruction, Visit visit) const {
  if (instruction.op == Op::k_load || is_atomic(instruction.op)) {
    visit(at(instruction.operands[0], instruction.imm), static_cast<uint32_t>(instruction.width));
  } else if (instruction.op == Op::k_copy) {
    visit(at(instruction.operands[1]), static_cast<uint32_t>(instruction.imm));
  } else if (is_call(instruction.op)) {
    for (ValueId argument : instruction.operands) visit(at(argument), 0u);
    return true;
  }
  return false;
}

}  // namespace espy::ir
