// Runs a function of IR in the plainest way: pure operations, branches, stack objects of loads and stores. Written
// apart from opt/scalar_passes.h, so that the two can be judges of each other.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace espy::test {

// What `ret` gives; nothing if an operation is not supported, an access leaves its object, or after `max_steps`.
// `parameters` are the function's. Addresses of stack objects are (slot + 1) << 32.
class IrEvaluator {
 public:
  explicit IrEvaluator(const ir::Function& function) : function_(function), values_(function.values.size()) {
    for (const ir::Slot& slot : function.slots) memory_.emplace_back(slot.size_bytes);
  }

  std::optional<uint64_t> run(const std::vector<uint64_t>& parameters, int max_steps = 10'000) {
    parameters_ = parameters;
    ir::BlockId block{0};
    for (;;) {
      for (ir::ValueId id : function_.blocks[block].instructions) {
        const ir::Instruction& instruction = function_.values[id];
        if (max_steps-- == 0) return {};
        if (instruction.op == ir::Op::k_ret) return value(instruction, 0);
        if (instruction.targets.empty()) {
          if (!step(id, instruction)) return {};
          continue;
        }
        block = follow(instruction);
        if (!block.valid()) return {};
        break;
      }
    }
  }

 private:
  uint64_t value(const ir::Instruction& instruction, size_t i) const { return values_[instruction.operands[i].index]; }

  ir::BlockId follow(const ir::Instruction& instruction) {
    size_t which = 0;
    if (instruction.op == ir::Op::k_branch)
      which = holds(instruction.condition, value(instruction, 0), value(instruction, 1)) ? 0 : 1;
    const ir::Target& target = instruction.targets[which];
    std::vector<uint64_t> arguments;
    for (ir::ValueId argument : target.arguments) arguments.push_back(values_[argument.index]);
    const std::vector<ir::ValueId>& parameters = function_.blocks[target.block].parameters;
    for (size_t i = 0; i < parameters.size(); ++i) values_[parameters[i].index] = arguments[i];
    return target.block;
  }

  static bool holds(ir::Condition condition, uint64_t a, uint64_t b) {
    int64_t x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
    switch (condition) {
      case ir::Condition::eq: return a == b;
      case ir::Condition::ne: return a != b;
      case ir::Condition::ult: return a < b;
      case ir::Condition::ule: return !(b < a);
      case ir::Condition::ugt: return b < a;
      case ir::Condition::uge: return !(a < b);
      case ir::Condition::slt: return x < y;
      case ir::Condition::sle: return !(y < x);
      case ir::Condition::sgt: return y < x;
      case ir::Condition::sge: return !(x < y);
      case ir::Condition::test: return (a & b) != 0;
    }
    return false;
  }

  // The bytes of an access to a stack object, or null.
  uint8_t* bytes(uint64_t address, uint64_t size) {
    uint64_t slot = (address >> 32) - 1, offset = address & 0xffffffff;
    if (slot >= memory_.size() || offset + size > memory_[slot].size()) return nullptr;
    return memory_[slot].data() + offset;
  }

  static uint64_t extend(uint64_t value, int bits, bool is_signed) {
    value <<= 64 - bits;
    return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(value) >> (64 - bits)) : value >> (64 - bits);
  }

  bool step(ir::ValueId id, const ir::Instruction& instruction) {
    uint64_t& out = values_[id.index];
    switch (instruction.op) {
      case ir::Op::k_konst: out = static_cast<uint64_t>(instruction.imm); return true;
      case ir::Op::k_param: out = parameters_[static_cast<size_t>(instruction.imm)]; return true;
      case ir::Op::k_slot: out = uint64_t{instruction.slot.index + 1} << 32; return true;
      case ir::Op::k_load: {
        uint8_t* from = bytes(value(instruction, 0) + static_cast<uint64_t>(instruction.imm), instruction.width);
        if (!from) return false;
        out = 0;
        std::memcpy(&out, from, instruction.width);
        if (instruction.width < 8) out = extend(out, instruction.width * 8, instruction.is_signed);
        return true;
      }
      case ir::Op::k_store: {
        uint8_t* to = bytes(value(instruction, 0) + static_cast<uint64_t>(instruction.imm), instruction.width);
        uint64_t stored = value(instruction, 1);
        if (to) std::memcpy(to, &stored, instruction.width);
        return to != nullptr;
      }
      case ir::Op::k_zero: {
        uint8_t* to = bytes(value(instruction, 0), static_cast<uint64_t>(instruction.imm));
        if (to) std::memset(to, 0, static_cast<size_t>(instruction.imm));
        return to != nullptr;
      }
      default: break;
    }
    if (instruction.operands.size() == 1) return unary(instruction.op, value(instruction, 0), out);
    return instruction.operands.size() == 2 &&
           binary(instruction.op, value(instruction, 0), value(instruction, 1), out);
  }

  static bool unary(ir::Op op, uint64_t a, uint64_t& out) {
    auto swapped = [&](int bytes) {
      uint64_t result = 0;
      for (int i = 0; i < bytes; ++i) result = result << 8 | (a >> (8 * i) & 0xff);
      return result;
    };
    switch (op) {
      case ir::Op::k_neg: out = 0 - a; return true;
      case ir::Op::k_not: out = ~a; return true;
      case ir::Op::k_opaque: out = a; return true;
      case ir::Op::k_zext8: out = extend(a, 8, false); return true;
      case ir::Op::k_zext16: out = extend(a, 16, false); return true;
      case ir::Op::k_zext32: out = extend(a, 32, false); return true;
      case ir::Op::k_sext8: out = extend(a, 8, true); return true;
      case ir::Op::k_sext16: out = extend(a, 16, true); return true;
      case ir::Op::k_sext32: out = extend(a, 32, true); return true;
      case ir::Op::k_bswap16: out = swapped(2); return true;
      case ir::Op::k_bswap32: out = swapped(4); return true;
      case ir::Op::k_bswap64: out = swapped(8); return true;
      default: return false;
    }
  }

  static uint64_t signed_division(uint64_t a, uint64_t b, bool wants_remainder) {
    if (b == 0) return 0;
    bool a_negative = a >> 63, b_negative = b >> 63;
    uint64_t x = a_negative ? 0 - a : a, y = b_negative ? 0 - b : b;
    uint64_t result = wants_remainder ? x % y : x / y;
    bool is_negative = wants_remainder ? a_negative : a_negative != b_negative;
    return is_negative ? 0 - result : result;
  }

  static bool binary(ir::Op op, uint64_t a, uint64_t b, uint64_t& out) {
    switch (op) {
      case ir::Op::k_add: out = a + b; return true;
      case ir::Op::k_sub: out = a - b; return true;
      case ir::Op::k_mul: out = a * b; return true;
      case ir::Op::k_udiv: out = b ? a / b : 0; return true;
      case ir::Op::k_umod: out = b ? a % b : 0; return true;
      case ir::Op::k_sdiv: out = signed_division(a, b, false); return true;
      case ir::Op::k_smod: out = signed_division(a, b, true); return true;
      case ir::Op::k_and: out = a & b; return true;
      case ir::Op::k_or: out = a | b; return true;
      case ir::Op::k_xor: out = a ^ b; return true;
      case ir::Op::k_shl: out = a << (b % 64); return true;
      case ir::Op::k_shr: out = a >> (b % 64); return true;
      case ir::Op::k_sar: out = static_cast<uint64_t>(static_cast<int64_t>(a) >> (b % 64)); return true;
      case ir::Op::k_eq: out = holds(ir::Condition::eq, a, b); return true;
      case ir::Op::k_ne: out = holds(ir::Condition::ne, a, b); return true;
      case ir::Op::k_ult: out = holds(ir::Condition::ult, a, b); return true;
      case ir::Op::k_ule: out = holds(ir::Condition::ule, a, b); return true;
      case ir::Op::k_slt: out = holds(ir::Condition::slt, a, b); return true;
      case ir::Op::k_sle: out = holds(ir::Condition::sle, a, b); return true;
      default: return false;
    }
  }

  const ir::Function& function_;
  std::vector<uint64_t> values_, parameters_;
  std::vector<std::vector<uint8_t>> memory_;
};

}  // namespace espy::test
