// An interpreter for the IR that needs no kernel: arithmetic, control flow, calls, stack slots and, unlike ir_eval.h's,
// a context of words that the function reads and writes. It judges the optimiser and the back end, so it shares no
// code with them.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace espy::test {

class IrMachine {
 public:
  // `context` is read and written by the function.
  IrMachine(const ir::Module& module, ir::FunctionId function, std::vector<uint64_t>& context)
      : module_(module), function_(module.functions[function]), context_(context) {}

  // What the function returns; nothing if it runs for more than `steps` instructions or does what this cannot do.
  std::optional<uint64_t> run(std::vector<uint64_t> arguments = {}, size_t steps = 1'000'000) {
    values_.assign(function_.values.size(), 0);
    slots_.clear();
    for (const ir::Slot& slot : function_.slots) slots_.emplace_back(slot.size_bytes);
    arguments_ = std::move(arguments);
    ir::BlockId block{0};
    while (true) {
      for (ir::ValueId id : function_.blocks[block].instructions) {
        if (steps-- == 0) return std::nullopt;
        const ir::Instruction& insn = function_.values[id];
        if (insn.op == ir::Op::k_ret) return value(insn.operands[0]);
        if (!insn.targets.empty()) {
          block = go_to(insn);
          break;
        }
        std::optional<uint64_t> result = execute(insn);
        if (!result) return std::nullopt;
        values_[id.index] = *result;
      }
    }
  }

 private:
  static constexpr uint64_t kContextBase = 0x7000'0000'0000, kSlotBase = 0x7100'0000'0000, kSlotStride = 0x10000;

  uint64_t value(ir::ValueId id) const { return values_[id.index]; }

  ir::BlockId go_to(const ir::Instruction& end) {
    bool first = end.op != ir::Op::k_branch || holds(end.condition, value(end.operands[0]), value(end.operands[1]));
    const ir::Target& target = end.targets[first ? 0 : 1];
    std::vector<uint64_t> arguments;
    for (ir::ValueId argument : target.arguments) arguments.push_back(value(argument));
    for (size_t i = 0; i < arguments.size(); ++i)
      values_[function_.blocks[target.block].parameters[i].index] = arguments[i];
    return target.block;
  }

  static bool holds(ir::Condition condition, uint64_t a, uint64_t b) {
    auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    switch (condition) {
      case ir::Condition::eq: return a == b;
      case ir::Condition::ne: return a != b;
      case ir::Condition::ult: return a < b;
      case ir::Condition::ule: return a <= b;
      case ir::Condition::ugt: return a > b;
      case ir::Condition::uge: return a >= b;
      case ir::Condition::slt: return sa < sb;
      case ir::Condition::sle: return sa <= sb;
      case ir::Condition::sgt: return sa > sb;
      case ir::Condition::sge: return sa >= sb;
      case ir::Condition::test: return (a & b) != 0;
    }
    return false;
  }

  uint8_t* memory(uint64_t address, uint64_t size) {
    uint8_t* base = nullptr;
    uint64_t limit = 0, offset = 0;
    if (address >= kSlotBase) {
      size_t slot = (address - kSlotBase) / kSlotStride;
      if (slot >= slots_.size()) return nullptr;
      base = slots_[slot].data();
      limit = slots_[slot].size();
      offset = (address - kSlotBase) % kSlotStride;
    } else if (address >= kContextBase) {
      base = reinterpret_cast<uint8_t*>(context_.data());
      limit = context_.size() * 8;
      offset = address - kContextBase;
    }
    return base && offset + size <= limit ? base + offset : nullptr;
  }

  static uint64_t extend(uint64_t value, unsigned bits, bool is_signed) {
    if (bits == 64) return value;
    uint64_t low = value & ((uint64_t{1} << bits) - 1);
    bool is_negative = is_signed && (low >> (bits - 1)) != 0;
    return is_negative ? low | ~uint64_t{0} << bits : low;
  }

  std::optional<uint64_t> execute(const ir::Instruction& insn) {
    using ir::Op;
    switch (insn.op) {
      case Op::k_konst: return static_cast<uint64_t>(insn.imm);
      case Op::k_context: return kContextBase;
      case Op::k_param: return arguments_.at(static_cast<size_t>(insn.imm));
      case Op::k_slot: return kSlotBase + insn.slot.index * kSlotStride;
      case Op::k_load:
      case Op::k_store:
      case Op::k_zero:
      case Op::k_copy: return access(insn);
      case Op::k_call_function: return call(insn);
      case Op::k_call: return 0;  // the callers use helpers for their clobbering only
      default: break;
    }
    if (insn.operands.size() == 1) return unary(insn.op, value(insn.operands[0]));
    if (insn.operands.size() == 2) return binary(insn.op, value(insn.operands[0]), value(insn.operands[1]));
    return std::nullopt;
  }

  std::optional<uint64_t> call(const ir::Instruction& insn) {
    std::vector<uint64_t> arguments;
    for (ir::ValueId operand : insn.operands) arguments.push_back(value(operand));
    return IrMachine(module_, insn.function, context_).run(arguments);
  }

  std::optional<uint64_t> access(const ir::Instruction& insn) {
    uint64_t address = value(insn.operands[0]);
    if (insn.op == ir::Op::k_zero || insn.op == ir::Op::k_copy) {
      auto size = static_cast<uint64_t>(insn.imm);
      uint8_t* to = memory(address, size);
      uint8_t* from = insn.op == ir::Op::k_copy ? memory(value(insn.operands[1]), size) : to;
      if (!to || !from) return std::nullopt;
      insn.op == ir::Op::k_zero ? std::memset(to, 0, size) : std::memcpy(to, from, size);
      return 0;
    }
    uint8_t* at = memory(address + static_cast<uint64_t>(insn.imm), insn.width);
    if (!at) return std::nullopt;
    uint64_t word = 0;
    if (insn.op == ir::Op::k_store) {
      word = value(insn.operands[1]);
      std::memcpy(at, &word, insn.width);  // little endian
      return 0;
    }
    std::memcpy(&word, at, insn.width);
    return extend(word, insn.width * 8u, insn.is_signed);
  }

  static std::optional<uint64_t> unary(ir::Op op, uint64_t a) {
    using ir::Op;
    switch (op) {
      case Op::k_neg: return 0 - a;
      case Op::k_not: return ~a;
      case Op::k_opaque: return a;
      case Op::k_zext8: return extend(a, 8, false);
      case Op::k_zext16: return extend(a, 16, false);
      case Op::k_zext32: return extend(a, 32, false);
      case Op::k_sext8: return extend(a, 8, true);
      case Op::k_sext16: return extend(a, 16, true);
      case Op::k_sext32: return extend(a, 32, true);
      case Op::k_bswap16: return __builtin_bswap16(static_cast<uint16_t>(a));
      case Op::k_bswap32: return __builtin_bswap32(static_cast<uint32_t>(a));
      case Op::k_bswap64: return __builtin_bswap64(a);
      default: return std::nullopt;
    }
  }

  static std::optional<uint64_t> binary(ir::Op op, uint64_t a, uint64_t b) {
    using ir::Op;
    auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    switch (op) {
      case Op::k_add: return a + b;
      case Op::k_sub: return a - b;
      case Op::k_mul: return a * b;
      case Op::k_udiv: return b == 0 ? 0 : a / b;
      case Op::k_umod: return b == 0 ? 0 : a % b;
      case Op::k_sdiv: return b == 0 ? 0 : sb == -1 ? 0 - a : static_cast<uint64_t>(sa / sb);
      case Op::k_smod: return b == 0 || sb == -1 ? 0 : static_cast<uint64_t>(sa % sb);
      case Op::k_and: return a & b;
      case Op::k_or: return a | b;
      case Op::k_xor: return a ^ b;
      case Op::k_shl: return a << (b & 63);
      case Op::k_shr: return a >> (b & 63);
      case Op::k_sar: return static_cast<uint64_t>(sa >> (b & 63));
      case Op::k_eq: return a == b;
      case Op::k_ne: return a != b;
      case Op::k_ult: return a < b;
      case Op::k_ule: return a <= b;
      case Op::k_slt: return sa < sb;
      case Op::k_sle: return sa <= sb;
      default: return std::nullopt;
    }
  }

  const ir::Module& module_;
  const ir::Function& function_;
  std::vector<uint64_t>& context_;
  std::vector<uint64_t> arguments_;
  std::vector<uint64_t> values_;
  std::vector<std::vector<uint8_t>> slots_;
};

}  // namespace espy::test
