#include "support/sim_interpreter.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "bpf/disassemble.h"
#include "bpf/encoding.h"

namespace espy::simulator {

namespace {

using namespace bpf;  // the bits of instructions
using program::BpfInsn;

constexpr uint32_t kMaxDepth = 8;                       // frames, as in the kernel
constexpr uint64_t kMayGotoBudget = uint64_t{1} << 23;  // BPF_MAX_LOOPS
constexpr uint64_t kMaxSteps = uint64_t{1} << 28;
constexpr uint64_t kCastReach = 1 << 20;  // how far behind a cast pointer a load may be
constexpr uint64_t kFunctionTag = uint64_t{0xf0} << 56;
constexpr std::byte kPoison{0xaa};

unsigned dst_of(const BpfInsn& insn) { return insn.registers & 0x0f; }
unsigned src_of(const BpfInsn& insn) { return insn.registers >> 4; }

uint64_t sign_extend(uint64_t value, unsigned bits) {
  return static_cast<uint64_t>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
}

template <class Unsigned, class Signed>
Unsigned divide(Unsigned a, Unsigned b, bool is_signed, bool is_modulo) {
  if (b == 0) return is_modulo ? a : 0;
  if (!is_signed) return is_modulo ? a % b : a / b;
  if (static_cast<Signed>(b) == -1) return is_modulo ? 0 : Unsigned{0} - a;  // the smallest number stays itself
  const auto x = static_cast<Signed>(a), y = static_cast<Signed>(b);
  return static_cast<Unsigned>(is_modulo ? x % y : x / y);
}

template <class Unsigned, class Signed>
Unsigned arithmetic(uint8_t operation, Unsigned a, Unsigned b, int16_t offset) {
  constexpr unsigned kCountMask = sizeof(Unsigned) * 8 - 1;
  switch (operation) {
    case kAdd: return a + b;
    case kSub: return a - b;
    case kMul: return a * b;
    case kDiv: return divide<Unsigned, Signed>(a, b, offset == 1, false);
    case kMod: return divide<Unsigned, Signed>(a, b, offset == 1, true);
    case kOr: return a | b;
    case kAnd: return a & b;
    case kXor: return a ^ b;
    case kLsh: return a << (b & kCountMask);
    case kRsh: return a >> (b & kCountMask);
    case kArsh: return static_cast<Unsigned>(static_cast<Signed>(a) >> (b & kCountMask));
    case kNeg: return Unsigned{0} - a;
    default: return offset == 0 ? b : static_cast<Unsigned>(sign_extend(b, static_cast<unsigned>(offset)));
  }
}

uint64_t swap_bytes(const BpfInsn& insn, uint64_t value) {
  // A conversion to little-endian only truncates on a little-endian CPU.
  const bool swaps = class_of(insn.code) == kAlu64 || (insn.code & kReg) != 0;
  switch (insn.imm) {
    case 16: return swaps ? __builtin_bswap16(static_cast<uint16_t>(value)) : value & 0xffff;
    case 32: return swaps ? __builtin_bswap32(static_cast<uint32_t>(value)) : value & 0xffff'ffff;
    default: return swaps ? __builtin_bswap64(value) : value;
  }
}

template <class Unsigned, class Signed>
bool holds(uint8_t operation, Unsigned a, Unsigned b) {
  const auto x = static_cast<Signed>(a), y = static_cast<Signed>(b);
  switch (operation) {
    case kJeq: return a == b;
    case kJne: return a != b;
    case kJgt: return a > b;
    case kJge: return a >= b;
    case kJlt: return a < b;
    case kJle: return a <= b;
    case kJsgt: return x > y;
    case kJsge: return x >= y;
    case kJslt: return x < y;
    case kJsle: return x <= y;
    default: return (a & b) != 0;
  }
}

uint64_t load_bytes(const std::byte* from, unsigned size_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, size_bytes);
  return value;
}

}  // namespace

Result<uint64_t> Interpreter::run(std::span<std::byte> context) {
  const ScopedRegion region(world_.memory, context, true);
  context_ = reinterpret_cast<uint64_t>(context.data());
  may_goto_left_ = kMayGotoBudget;
  const auto result = call(0, {context_});
  for (SimMap& map : maps_) map.bury_removed();
  return result;
}

Result<uint64_t> Interpreter::call(uint32_t function_at, const Arguments& arguments) {
  if (depth_ == kMaxDepth) return fail("calls are nested too deeply");
  Frame frame;
  frame.at = function_at;
  frame.stack.fill(kPoison);
  frame.registers.fill(0xdead'dead'dead'dead);
  std::copy(arguments.begin(), arguments.end(), frame.registers.begin() + 1);
  const ScopedRegion region(world_.memory, frame.stack);
  frame.registers[10] = reinterpret_cast<uint64_t>(frame.stack.data() + frame.stack.size());
  ++depth_;
  for (;;) {
    if (frame.at >= program_.code.size()) return fail(fmt::format("{}: ran off the end", program_.name));
    if (++steps_ > kMaxSteps) return fail(fmt::format("{}: does not end", program_.name));
    const uint32_t at = frame.at++;
    const BpfInsn& insn = program_.code[at];
    if (insn.code == (kJmp | kExit)) break;
    if (const Status done = step(frame, insn); !done) {
      --depth_;
      return fail(fmt::format("{}\n  in {} at {}: {}", done.error().message, program_.name, at,
                              disassemble_one(program_.code, at)));
    }
  }
  --depth_;
  return frame.registers[0];
}

Status Interpreter::step(Frame& frame, const BpfInsn& insn) {
  uint64_t& dst = frame.registers[dst_of(insn)];
  const uint64_t src =
      (insn.code & kReg) != 0 ? frame.registers[src_of(insn)] : static_cast<uint64_t>(static_cast<int64_t>(insn.imm));
  switch (class_of(insn.code)) {
    case kAlu64:
      if (dst_of(insn) == 10) return fail("writes the frame pointer");
      dst = operation_of(insn.code) == kEnd
                ? swap_bytes(insn, dst)
                : arithmetic<uint64_t, int64_t>(operation_of(insn.code), dst, src, insn.offset);
      return {};
    case kAlu32:
      dst = operation_of(insn.code) == kEnd
                ? swap_bytes(insn, dst)
                : arithmetic<uint32_t, int32_t>(operation_of(insn.code), static_cast<uint32_t>(dst),
                                                static_cast<uint32_t>(src), insn.offset);
      return {};
    case kJmp:
    case kJmp32: return step_jump(frame, insn);
    case kLd: return load_constant(frame, insn);
    default: return step_memory(frame, insn);
  }
}

Status Interpreter::load_constant(Frame& frame, const BpfInsn& insn) {
  if (insn.code != kLdImm64) return fail("not an instruction");
  const BpfInsn& second = program_.code[frame.at++];
  uint64_t& dst = frame.registers[dst_of(insn)];
  switch (src_of(insn)) {
    case kPseudoMapFd: dst = reinterpret_cast<uint64_t>(&maps_[static_cast<size_t>(insn.imm)]); return {};
    case kPseudoMapValue: {
      SimMap& map = maps_[static_cast<size_t>(insn.imm)];
      if (map.shape().kind != program::MapKind::kArray) return fail("the value's address is known of arrays only");
      dst = reinterpret_cast<uint64_t>(map.array_bytes().data()) + static_cast<uint32_t>(second.imm);
      return {};
    }
    // Relative to the next instruction, as calls are.
    case kPseudoFunction: dst = kFunctionTag | static_cast<uint64_t>(int64_t{frame.at} - 1 + insn.imm); return {};
    case 0:
      dst = static_cast<uint32_t>(insn.imm) | static_cast<uint64_t>(static_cast<uint32_t>(second.imm)) << 32;
      return {};
    default: return fail("an address of a kind that is not simulated");
  }
}

bool Interpreter::was_cast(uint64_t address) const {
  const auto at = casts_.upper_bound(address);
  return at != casts_.begin() && address - *std::prev(at) < kCastReach;
}

Status Interpreter::step_memory(Frame& frame, const BpfInsn& insn) {
  const unsigned size = size_bytes(insn.code);
  const bool is_load = class_of(insn.code) == kLdx;
  if (mode_of(insn.code) == kModeAtomic) return step_atomic(frame, insn);
  const uint64_t address =
      frame.registers[is_load ? src_of(insn) : dst_of(insn)] + static_cast<uint64_t>(int64_t{insn.offset});
  const std::byte* own = world_.memory.find(address, size, is_load ? Access::kRead : Access::kWrite);
  if (!is_load) {
    if (own == nullptr)
      return fail(fmt::format("writes {} bytes at {:#x}, which are not the program's", size, address));
    const uint64_t value = class_of(insn.code) == kStx ? frame.registers[src_of(insn)]
                                                       : static_cast<uint64_t>(static_cast<int64_t>(insn.imm));
    std::memcpy(const_cast<std::byte*>(own), &value, size);
    return {};
  }
  uint64_t value = 0;
  if (own != nullptr) {
    value = load_bytes(own, size);
  } else if (was_cast(address)) {
    std::array<std::byte, 8> buffer = {};
    if (world_.memory.read_anywhere(address, std::span(buffer).first(size))) value = load_bytes(buffer.data(), size);
  } else {
    return fail(fmt::format("reads {} bytes at {:#x}, which are not the program's", size, address));
  }
  frame.registers[dst_of(insn)] = mode_of(insn.code) == kModeMemSigned ? sign_extend(value, size * 8) : value;
  return {};
}

Status Interpreter::step_atomic(Frame& frame, const BpfInsn& insn) {
  const unsigned size = size_bytes(insn.code);
  const bool is_load = insn.imm == kLoadAcquire;
  uint64_t& src = frame.registers[src_of(insn)];
  const uint64_t address =
      (is_load ? src : frame.registers[dst_of(insn)]) + static_cast<uint64_t>(int64_t{insn.offset});
  std::byte* own = world_.memory.find(address, size, is_load ? Access::kRead : Access::kWrite);
  if (own == nullptr) return fail(fmt::format("changes {} bytes at {:#x}, which are not the program's", size, address));
  if (address % size != 0) return fail(fmt::format("an atomic access to {:#x}, which is not aligned", address));
  const uint64_t old = load_bytes(own, size);
  uint64_t next = old;
  if (is_load) {
    frame.registers[dst_of(insn)] = old;
    return {};
  }
  switch (insn.imm) {
    case kXchg:
    case kStoreRelease: next = src; break;
    case kCmpxchg: {
      const uint64_t expected = size == 4 ? static_cast<uint32_t>(frame.registers[0]) : frame.registers[0];
      if (old == expected) next = src;
      frame.registers[0] = old;
      break;
    }
    default:
      switch (insn.imm & ~kFetch) {
        case kAtomicAdd: next = old + src; break;
        case kAtomicOr: next = old | src; break;
        case kAtomicAnd: next = old & src; break;
        case kAtomicXor: next = old ^ src; break;
        default: return fail("not an atomic operation");
      }
  }
  std::memcpy(own, &next, size);
  if ((insn.imm & kFetch) != 0 && insn.imm != kCmpxchg && insn.imm != kStoreRelease) src = old;
  return {};
}

Status Interpreter::step_jump(Frame& frame, const BpfInsn& insn) {
  const uint8_t operation = operation_of(insn.code);
  const auto jump = [&](int32_t distance) { frame.at = static_cast<uint32_t>(int64_t{frame.at} + distance); };
  if (operation == kCall) return step_call(frame, insn);
  if (operation == kJa) {
    jump(class_of(insn.code) == kJmp32 ? insn.imm : insn.offset);
    return {};
  }
  if (operation == kJcond) {
    if (may_goto_left_ == 0) {
      jump(insn.offset);
    } else {
      --may_goto_left_;
    }
    return {};
  }
  const uint64_t a = frame.registers[dst_of(insn)];
  const uint64_t b =
      (insn.code & kReg) != 0 ? frame.registers[src_of(insn)] : static_cast<uint64_t>(static_cast<int64_t>(insn.imm));
  const bool taken = class_of(insn.code) == kJmp
                         ? holds<uint64_t, int64_t>(operation, a, b)
                         : holds<uint32_t, int32_t>(operation, static_cast<uint32_t>(a), static_cast<uint32_t>(b));
  if (taken) jump(insn.offset);
  return {};
}

Status Interpreter::step_call(Frame& frame, const BpfInsn& insn) {
  const Arguments arguments = {frame.registers[1], frame.registers[2], frame.registers[3], frame.registers[4],
                               frame.registers[5]};
  uint64_t result = 0;
  switch (src_of(insn)) {
    case kCallHelper: result = TRY(helper(insn.imm, arguments)); break;
    case kCallFunction: result = TRY(call(static_cast<uint32_t>(int64_t{frame.at} + insn.imm), arguments)); break;
    case kCallKfunc: result = TRY(kfunc(static_cast<uint32_t>(insn.imm), arguments)); break;
    default: return fail("not a call");
  }
  frame.registers[0] = result;
  for (size_t i = 1; i <= 5; ++i) frame.registers[i] = 0xdead'dead'dead'dead;
  return {};
}

Result<uint64_t> Interpreter::kfunc(uint32_t id, const Arguments& a) {
  if (id == kfuncs_.rdonly_cast && id != 0) {
    casts_.insert(a[0]);
    return a[0];
  }
  if (id == kfuncs_.map_sum_elem_count && id != 0) return TRY(map_of(a[0]))->size();
  if (id == kfuncs_.session_is_return && id != 0) return world_.is_return;
  if (id == kfuncs_.strstr && id != 0) return strstr(a);
  return fail(fmt::format("the kernel function {} is not simulated", id));
}

}  // namespace espy::simulator
