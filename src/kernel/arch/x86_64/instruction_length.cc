// The length of an instruction: prefixes, opcode, ModRM with SIB and displacement, immediates (Intel's manual, volume
// 2, appendix A). Its meaning is not decoded.
//
// Opcodes are in maps: one byte; after 0f; after 0f 38 and 0f 3a; and the same after VEX, EVEX and XOP prefixes. For
// each map, sets of 256 bits say which opcodes have a ModRM byte and which an immediate byte.
#include <array>
#include <cstddef>

#include "kernel/arch/x86_64/x86_64.h"

namespace espy::kernel::x86_64 {
namespace {

constexpr size_t kLongest = 15;

struct OpcodeSet {
  std::array<bool, 256> has = {};
  constexpr OpcodeSet& add(unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; ++i) has[i] = true;
    return *this;
  }
  constexpr OpcodeSet& add(unsigned one) { return add(one, one); }
  constexpr bool operator[](uint8_t opcode) const { return has[opcode]; }
};

// ---- One-byte opcodes

constexpr OpcodeSet one_byte_modrm() {
  OpcodeSet out;
  for (unsigned row = 0; row < 0x40; row += 8) out.add(row, row + 3);  // add, or, adc, sbb, and, sub, xor, cmp
  return out.add(0x63)
      .add(0x69)
      .add(0x6b)
      .add(0x80, 0x8f)
      .add(0xc0, 0xc1)
      .add(0xc6, 0xc7)
      .add(0xd0, 0xd3)
      .add(0xd8, 0xdf)
      .add(0xf6, 0xf7)
      .add(0xfe, 0xff);
}

constexpr OpcodeSet one_byte_imm8() {
  OpcodeSet out;
  for (unsigned row = 0; row < 0x40; row += 8) out.add(row + 4);
  return out.add(0x6a, 0x6b)
      .add(0x70, 0x80)
      .add(0x83)
      .add(0xa8)
      .add(0xb0, 0xb7)
      .add(0xc0, 0xc1)
      .add(0xc6)
      .add(0xcd)
      .add(0xe0, 0xe7)
      .add(0xeb);
}

// Two or four bytes, by the operand's size.
constexpr OpcodeSet one_byte_imm_operand() {
  OpcodeSet out;
  for (unsigned row = 0; row < 0x40; row += 8) out.add(row + 5);
  return out.add(0x68, 0x69).add(0x81).add(0xa9).add(0xc7);
}

// ---- Opcodes behind 0f

constexpr OpcodeSet two_byte_modrm() {
  OpcodeSet out;
  out.add(0, 0xff);
  for (const auto [first, last] : {std::array{0x04u, 0x0cu},
                                   {0x0eu, 0x0eu},
                                   {0x30u, 0x37u},
                                   {0x77u, 0x77u},
                                   {0x80u, 0x8fu},
                                   {0xa0u, 0xa2u},
                                   {0xa8u, 0xaau},
                                   {0xc8u, 0xcfu}})
    for (unsigned i = first; i <= last; ++i) out.has[i] = false;
  return out;
}

constexpr OpcodeSet two_byte_imm8() {
  OpcodeSet out;
  return out.add(0x0f).add(0x70, 0x73).add(0xa4).add(0xac).add(0xba).add(0xc2).add(0xc4, 0xc6);
}

constexpr OpcodeSet kModrm1 = one_byte_modrm();
constexpr OpcodeSet kImm8In1 = one_byte_imm8();
constexpr OpcodeSet kImmOperand1 = one_byte_imm_operand();
constexpr OpcodeSet kModrm2 = two_byte_modrm();
constexpr OpcodeSet kImm8In2 = two_byte_imm8();

constexpr bool is_prefix(uint8_t byte) {
  switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3: return true;
    default: return false;
  }
}

class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t length() {
    while (is_prefix(peek())) {
      has_small_operand_ |= peek() == 0x66;
      has_small_address_ |= peek() == 0x67;
      ++at_;
    }
    if ((peek() & 0xf0) == 0x40) is_wide_ = (next() & 8) != 0;
    const uint8_t opcode = next();
    switch (opcode) {
      case 0x0f: two_byte(); break;
      case 0xc4: vex(next() & 0x1f, 1); break;
      case 0xc5: vex(1, 0); break;
      case 0x62: evex(); break;
      case 0x8f:
        if ((peek() & 0x1f) >= 8) {
          xop();
          break;
        }
        [[fallthrough]];
      default: one_byte(opcode);
    }
    return at_ > bytes_.size() || at_ > kLongest ? 0 : static_cast<uint32_t>(at_);
  }

 private:
  uint8_t peek() const { return at_ < bytes_.size() ? bytes_[at_] : 0; }
  uint8_t next() {
    const uint8_t out = peek();
    ++at_;
    return out;
  }

  size_t operand_bytes() const { return has_small_operand_ && !is_wide_ ? 2 : 4; }

  void one_byte(uint8_t opcode) {
    const uint8_t modrm_byte = peek();
    if (kModrm1[opcode]) modrm();
    if (kImm8In1[opcode]) at_ += 1;
    if (kImmOperand1[opcode]) at_ += operand_bytes();
    if (opcode >= 0xb8 && opcode <= 0xbf) at_ += is_wide_ ? 8 : operand_bytes();
    if (opcode >= 0xa0 && opcode <= 0xa3) at_ += has_small_address_ ? 4 : 8;
    if (opcode == 0xe8 || opcode == 0xe9) at_ += 4;
    if (opcode == 0xc2 || opcode == 0xca) at_ += 2;
    if (opcode == 0xc8) at_ += 3;
    // Of f6 and f7 only `test` has an immediate.
    const bool is_test = (modrm_byte >> 3 & 7) <= 1;
    if (opcode == 0xf6 && is_test) at_ += 1;
    if (opcode == 0xf7 && is_test) at_ += operand_bytes();
  }

  void two_byte() {
    const uint8_t opcode = next();
    if (opcode == 0x38 || opcode == 0x3a) {
      next();
      modrm();
      if (opcode == 0x3a) at_ += 1;
      return;
    }
    if (opcode >= 0x80 && opcode <= 0x8f) at_ += 4;
    if (kModrm2[opcode]) modrm();
    if (kImm8In2[opcode]) at_ += 1;
  }

  // The opcode of `map` with its operands; `skipped` bytes of the prefix are still to be passed over.
  void vex(uint32_t map, size_t skipped) {
    if (skipped == 0) ++at_;
    at_ += skipped;
    in_map(map);
  }

  void evex() {
    const uint32_t map = peek() & 7;
    at_ += 3;
    in_map(map);
  }

  void in_map(uint32_t map) {
    const uint8_t opcode = next();
    if (map == 1 && opcode == 0x77) return;  // vzeroupper
    modrm();
    if (map == 3 || (map == 1 && kImm8In2[opcode])) at_ += 1;
  }

  void xop() {
    const uint32_t map = next() & 0x1f;
    at_ += 1;
    next();
    modrm();
    at_ += map == 8 ? 1 : map == 10 ? 4 : 0;
  }

  void modrm() {
    const uint8_t byte = next();
    const uint8_t mode = byte >> 6;
    const uint8_t base = byte & 7;
    if (mode == 3) return;
    uint8_t from = base;
    if (base == 4) from = next() & 7;
    if (mode == 1) at_ += 1;
    if (mode == 2 || (mode == 0 && from == 5)) at_ += 4;
  }

  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool has_small_operand_ = false;
  bool has_small_address_ = false;
  bool is_wide_ = false;
};

}  // namespace

uint32_t instruction_length(std::span<const uint8_t> code) { return Decoder(code).length(); }

}  // namespace espy::kernel::x86_64
