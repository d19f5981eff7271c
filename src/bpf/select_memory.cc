// Selection of memory accesses and calls.
#include "bpf/select_impl.h"

namespace espy::bpf {

using namespace ir;

void MemorySelector::select(ValueId id, const Instruction& instruction) {
  const std::vector<ValueId>& operands = instruction.operands;
  switch (instruction.op) {
    case Op::k_load:
      return load(instruction.width, code_.result(id), operand(operands[0], instruction.imm), instruction.is_signed);
    case Op::k_store_release:
      if (!code_.target().has_ordered_stores) return atomic(id, instruction);
      [[fallthrough]];
    case Op::k_store: return store_value(instruction.width, operand(operands[0], instruction.imm), operands[1]);
    case Op::k_zero: return zero(operand(operands[0], 0), instruction.imm);
    case Op::k_copy: {
      Operand to = operand(operands[0], 0);
      return copy(to, operand(operands[1], 0), instruction.imm);
    }
    default: return atomic(id, instruction);
  }
}

MemorySelector::Operand MemorySelector::operand(ValueId address, int64_t offset) {
  FoldedAddress folded = fold_address(code_.function(), address, 0);
  const Instruction& base = code_.function().values[folded.base];
  int64_t total = folded.offset + offset;
  if (base.op == Op::k_slot) return {.object = base.slot.index, .offset = static_cast<int32_t>(total)};
  if (base.op == Op::k_map_value && base.imm + total >= 0) {
    // Addresses that are close share a register: the offset holds the low bits.
    int64_t low = (base.imm + total) & 0x3fff;
    return {.base = code_.shared(base, base.imm + total - low), .offset = static_cast<int32_t>(low)};
  }
  Reg reg = code_.use(folded.base);
  if (fits_offset(total)) return {.base = reg, .offset = static_cast<int32_t>(total)};
  Reg sum = code_.new_register();
  if (total == static_cast<int32_t>(total)) {
    code_.move(sum, reg);
    code_.alu_imm(kAdd, sum, static_cast<int32_t>(total));
  } else {
    code_.put_constant(sum, total);
    code_.alu(kAdd, sum, reg);
  }
  return {.base = sum};
}

void MemorySelector::load(unsigned width, Reg dst, const Operand& from, bool is_signed) {
  bool extends = is_signed && width < 8;
  uint8_t mode = extends && code_.target().v4 ? kModeMemSigned : kModeMem;
  code_.push({.code = static_cast<uint8_t>(kLdx | mode | size_code(width)),
              .dst = dst,
              .src = from.base,
              .offset = from.offset,
              .object = from.object});
  if (extends && !code_.target().v4) scalars_.sign_extend(dst, width * 8);
}

void MemorySelector::store(unsigned width, const Operand& to, Reg src) {
  code_.push({.code = static_cast<uint8_t>(kStx | kModeMem | size_code(width)),
              .dst = to.base,
              .src = src,
              .offset = to.offset,
              .object = to.object});
}

void MemorySelector::store_constant(unsigned width, const Operand& to, int32_t imm) {
  code_.push({.code = static_cast<uint8_t>(kSt | kModeMem | size_code(width)),
              .dst = to.base,
              .offset = to.offset,
              .imm = imm,
              .object = to.object});
}

void MemorySelector::store_value(unsigned width, const Operand& to, ValueId value) {
  std::optional<int64_t> imm = code_.constant(value);
  if (imm && (width < 8 || *imm == static_cast<int32_t>(*imm)))
    return store_constant(width, to, static_cast<int32_t>(*imm));
  store(width, to, code_.use(value));
}

void MemorySelector::zero(Operand to, int64_t size_bytes) {
  for (unsigned width : {8, 4, 2, 1}) {
    for (; size_bytes >= width; size_bytes -= width) {
      store_constant(width, to, 0);
      to.offset += static_cast<int32_t>(width);
    }
  }
}

void MemorySelector::copy(Operand to, Operand from, int64_t size_bytes) {
  for (unsigned width : {8, 4, 2, 1}) {
    for (; size_bytes >= width; size_bytes -= width) {
      Reg word = code_.new_register();
      load(width, word, from);
      store(width, to, word);
      to.offset += static_cast<int32_t>(width);
      from.offset += static_cast<int32_t>(width);
    }
  }
}

namespace {

int32_t atomic_operation(Op op, const Target& target) {
  switch (op) {
    case Op::k_atomic_add: return kAtomicAdd;
    case Op::k_atomic_fetch_add: return kAtomicAdd | kFetch;
    case Op::k_atomic_fetch_or: return kAtomicOr | kFetch;
    case Op::k_atomic_fetch_and: return kAtomicAnd | kFetch;
    case Op::k_atomic_xchg: return kXchg;
    case Op::k_atomic_cmpxchg: return kCmpxchg;
    case Op::k_store_release: return target.has_store_release ? kStoreRelease : kXchg;
    default: UNREACHABLE("not an atomic operation");
  }
}

}  // namespace

void MemorySelector::atomic(ValueId id, const Instruction& instruction) {
  int32_t operation = atomic_operation(instruction.op, code_.target());
  Operand to = operand(instruction.operands[0], instruction.imm);
  bool is_exchange = operation == kCmpxchg;
  Reg src = code_.use(instruction.operands[is_exchange ? 2 : 1]);
  if (is_exchange) {
    code_.put(0, instruction.operands[1]);
  } else if ((operation & kFetch) != 0) {
    Reg old = instruction.op == Op::k_store_release ? code_.new_register() : code_.result(id);
    code_.move(old, src);
    src = old;
  }
  code_.push({.code = static_cast<uint8_t>(kStx | kModeAtomic | size_code(instruction.width)),
              .dst = to.base,
              .src = src,
              .offset = to.offset,
              .imm = operation,
              .object = to.object});
  if (is_exchange && code_.folding().is_needed(id)) code_.move(code_.result(id), 0);
}

void MemorySelector::call(ValueId id, const Instruction& instruction) {
  for (uint32_t i = 0; i < instruction.operands.size(); ++i) code_.put(i + 1, instruction.operands[i]);
  MachineInsn call{.code = kJmp | kCall, .arguments = static_cast<uint8_t>(instruction.operands.size())};
  if (instruction.op == Op::k_call) {
    call.imm = static_cast<int64_t>(instruction.helper);
  } else if (instruction.op == Op::k_kfunc) {
    call.pseudo = kCallKfunc;
    call.imm = instruction.imm;
  } else {
    call.pseudo = kCallFunction;
    call.function = instruction.function;
  }
  code_.push(call);
  if (code_.folding().is_needed(id)) code_.move(code_.result(id), 0);
}

}  // namespace espy::bpf
