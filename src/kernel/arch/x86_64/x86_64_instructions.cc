// The length of an instruction: prefixes, opcode, ModRM with SIB and displacement, immediates (Intel's manual, volume
// 2, appendix A). Its meaning is not decoded.
//
// Opcodes are in maps: one byte; after 0f; after 0f 38 and 0f 3a; and the same after VEX, EVEX and XOP prefixes. For
// each map, sets of 256 bits say which opcodes have a ModRM byte and which an immediate byte.
#include <array>
#include <cstddef>
#include <cstring>

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

// ---- Where instructions lead. Encodings are those of the Intel 64 manual, volume 2.

namespace {

using Kind = Flow::Kind;

constexpr uint8_t kNoTrack = 0x3e;  // of an indirect jump: its target needs no `endbr64`, as a case of a `switch`

template <typename Distance>
Flow jump(std::span<const uint8_t> instruction) {
  Distance distance = 0;
  if (instruction.size() < sizeof distance) return {};
  std::memcpy(&distance, instruction.data() + instruction.size() - sizeof distance, sizeof distance);
  return {Kind::kJump, static_cast<int64_t>(instruction.size()) + distance};
}

// Compilers read a case of a `switch` from a table: of addresses (`jmp *table(,%rax,8)`), or of distances, which they
// add to the address of the table in front of the jump (`add %rdx,%rax; jmp *%rax`).
bool is_switch(std::span<const uint8_t> before, std::span<const uint8_t> rest, bool has_rex_b) {
  const uint8_t modrm = rest[1];
  const uint8_t mode = modrm >> 6, base = modrm & 7;
  if (mode == 0 && base == 4) return rest.size() == 7 && (rest[2] & 7) == 5 && (rest[2] >> 6) == 3;
  if (mode != 3 || before.size() != 3 || (before[0] & 0xf8) != 0x48) return false;
  const bool is_to_rm = before[1] == 0x01;
  if (!is_to_rm && before[1] != 0x03) return false;
  const uint8_t sum = is_to_rm ? before[2] & 7 : (before[2] >> 3) & 7;
  const bool is_extended = (before[0] & (is_to_rm ? 1 : 4)) != 0;
  return before[2] >> 6 == 3 && sum == base && is_extended == has_rex_b;
}

// An instruction behind its prefixes.
struct Decoded {
  uint8_t opcode = 0, modrm = 0, sib = 0;
  uint8_t rex = 0;

  uint8_t mode() const { return modrm >> 6; }
  uint8_t reg() const { return static_cast<uint8_t>(((modrm >> 3) & 7) | (rex & 4) << 1); }
  bool is_memory() const { return mode() != 3; }
  bool is_at_stack_pointer() const { return is_memory() && (modrm & 7) == 4 && sib == 0x24 && (rex & 3) == 0; }
};

Decoded decode(std::span<const uint8_t> instruction) {
  Decoded out;
  size_t at = 0;
  for (; at < instruction.size(); ++at) {
    const uint8_t byte = instruction[at];
    const bool is_rex = (byte & 0xf0) == 0x40;
    if (is_rex) out.rex = byte & 0xf;
    if (!is_rex && byte != 0xf2 && byte != 0xf3 && byte != 0x66 && byte != 0x64) break;
  }
  const auto byte_at = [&](size_t offset) { return offset < instruction.size() ? instruction[offset] : uint8_t{0}; };
  out.opcode = byte_at(at);
  out.modrm = byte_at(at + 1);
  out.sib = byte_at(at + 2);
  return out;
}

// `push %rax`, or `mov %rax,(%rsp)` as in a retpoline: a `ret` behind it is a jump.
bool puts_on_stack(std::span<const uint8_t> instruction) {
  const Decoded it = decode(instruction);
  const bool is_store = it.opcode == 0x89 && it.is_at_stack_pointer() && it.mode() == 0 && (it.rex & 8) != 0;
  return is_store || (it.opcode & 0xf8) == 0x50;
}

// It moves the stack pointer, calls, or does not go on with the next instruction.
bool ends_entry(const Decoded& it) {
  const uint8_t opcode = it.opcode;
  const bool pushes = (opcode & 0xf0) == 0x50 || opcode == 0x68 || opcode == 0x6a || opcode == 0xc8;
  const bool calculates = (opcode == 0x81 || opcode == 0x83) && it.modrm == 0xec;
  const bool loads_address = opcode == 0x8d && ((it.modrm >> 3) & 7) == 4 && (it.rex & 4) == 0;
  const bool leaves =
      opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || opcode == 0xc2 || opcode == 0xc3 || opcode == 0xff;
  return pushes || calculates || loads_address || leaves;
}

}  // namespace

bool saves_return_address(std::span<const uint8_t> code) {
  uint32_t has_address = 0;  // a bit for each register
  while (!code.empty()) {
    const uint32_t length = instruction_length(code);
    if (length == 0 || length > code.size()) return false;
    const Decoded it = decode(code.first(length));
    if (ends_entry(it)) return false;
    const bool is_load =
        it.opcode == 0x8b && it.is_at_stack_pointer() && (it.mode() == 0 || (it.mode() == 1 && code[length - 1] == 0));
    if (is_load) has_address |= 1u << it.reg();
    const bool is_store = it.opcode == 0x89 && it.is_memory() && !it.is_at_stack_pointer();
    if (is_store && (has_address >> it.reg() & 1) != 0) return true;
    if (it.opcode == 0x8b && !is_load) has_address &= ~(1u << it.reg());
    code = code.subspan(length);
  }
  return false;
}

Flow flow_of(std::span<const uint8_t> before, std::span<const uint8_t> instruction) {
  std::span<const uint8_t> rest = instruction;
  bool is_tracked = true, has_rex_b = false;
  for (; !rest.empty(); rest = rest.subspan(1)) {
    const uint8_t byte = rest[0];
    const bool is_rex = (byte & 0xf0) == 0x40;
    if (!is_rex && byte != 0xf2 && byte != 0xf3 && byte != 0x2e && byte != kNoTrack) break;
    is_tracked &= byte != kNoTrack;
    has_rex_b = is_rex && (byte & 1) != 0;
  }
  if (rest.empty()) return {};
  const uint8_t opcode = rest[0], second = rest.size() > 1 ? rest[1] : 0;
  if ((opcode & 0xf0) == 0x70) return jump<int8_t>(instruction);
  switch (opcode) {
    case 0xc2:
    case 0xc3: return {puts_on_stack(before) ? Kind::kUnknown : Kind::kNext};
    case 0xe0:  // loopne, loope, loop, jrcxz
    case 0xe1:
    case 0xe2:
    case 0xe3:
    case 0xeb: return jump<int8_t>(instruction);
    case 0xe9: return jump<int32_t>(instruction);
    case 0x0f: return (second & 0xf0) == 0x80 ? jump<int32_t>(instruction) : Flow();
    case 0xff: {
      const bool is_jump = (second & 0x30) == 0x20;
      return {is_jump && is_tracked && !is_switch(before, rest, has_rex_b) ? Kind::kUnknown : Kind::kNext};
    }
    case 0xca:  // far returns, and those of interrupts
    case 0xcb:
    case 0xcf: return {Kind::kUnknown};
    case 0x66: {  // CPUs do not agree on the size of these
      const bool leads_away = second == 0xc2 || second == 0xc3 || second == 0xe9 || second == 0xeb;
      return {leads_away ? Kind::kUnknown : Kind::kNext};
    }
    default: return {};
  }
}

}  // namespace espy::kernel::x86_64
