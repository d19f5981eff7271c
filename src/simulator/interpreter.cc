#include "simulator/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/fatal.h"
#include "bpf/disassemble.h"
#include "bpf/machine_code.h"
#include "ir/ir.h"

namespace espy::simulator {

namespace {

using namespace bpf;  // the bits of instructions
using program::BpfInsn;

constexpr uint64_t kMayGotoBudget = uint64_t{1} << 23;  // BPF_MAX_LOOPS
constexpr uint64_t kMaxJumps = uint64_t{1} << 26;
constexpr uint64_t kCastReach = 1 << 20;  // how far behind a cast pointer a load may be
constexpr int kPoison = 0xaa;
constexpr uint64_t kDead = 0xdead'dead'dead'dead;  // in registers that hold nothing

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
[[gnu::always_inline]] inline Unsigned arithmetic(uint8_t operation, Unsigned a, Unsigned b, int16_t offset) {
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

// A conversion to little-endian only truncates on a little-endian CPU.
uint64_t swap_bytes(uint8_t code, int32_t bits, uint64_t value) {
  const bool swaps = class_of(code) == kAlu64 || (code & kReg) != 0;
  switch (bits) {
    case 16: return swaps ? __builtin_bswap16(static_cast<uint16_t>(value)) : value & 0xffff;
    case 32: return swaps ? __builtin_bswap32(static_cast<uint32_t>(value)) : value & 0xffff'ffff;
    default: return swaps ? __builtin_bswap64(value) : value;
  }
}

template <class Unsigned, class Signed>
[[gnu::always_inline]] inline bool holds(uint8_t operation, Unsigned a, Unsigned b) {
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

inline uint64_t load_bytes(const std::byte* from, unsigned size_bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, size_bytes);
  return value;
}

Error not_own(std::string_view verb, size_t size_bytes, uint64_t address) {
  return {fmt::format("{} {} bytes at {:#x}, which are not the program's", verb, size_bytes, address)};
}

}  // namespace

Interpreter::Interpreter(const program::BpfProgram& program, std::vector<SimMap>& maps, World& world,
                         const KfuncIds& kfuncs)
    : program_(program),
      maps_(maps),
      world_(world),
      kfuncs_(kfuncs),
      stacks_(std::make_unique<std::array<std::byte, kMaxDepth * kStackBytes>>()) {
  decode();
}

void Interpreter::decode() {
  code_.reserve(program_.code.size());
  for (uint32_t at = 0; at < program_.code.size(); ++at) {
    const BpfInsn& insn = program_.code[at];
    const BpfInsn second = at + 1 < program_.code.size() ? program_.code[at + 1] : BpfInsn{};
    Decoded decoded{insn.code, static_cast<uint8_t>(dst_of(insn)),      static_cast<uint8_t>(src_of(insn)), insn.offset,
                    insn.imm,  static_cast<uint64_t>(int64_t{insn.imm})};
    if (insn.code == kLdImm64) decoded.constant = constant_of(at, insn, second);
    code_.push_back(decoded);
  }
}

uint64_t Interpreter::constant_of(uint32_t at, const BpfInsn& insn, const BpfInsn& second) {
  switch (src_of(insn)) {
    case kPseudoMapFd: return reinterpret_cast<uint64_t>(&maps_[static_cast<size_t>(insn.imm)]);
    case kPseudoMapValue: {
      SimMap& map = maps_[static_cast<size_t>(insn.imm)];
      CHECK(map.shape().kind == program::MapKind::kArray);  // the value's address is known of arrays only
      return reinterpret_cast<uint64_t>(map.array_bytes().data()) + static_cast<uint32_t>(second.imm);
    }
    // Relative to the next instruction, as calls are.
    case kPseudoFunction: return kFunctionTag | static_cast<uint64_t>(int64_t{at} + 1 + insn.imm);
    default: return static_cast<uint32_t>(insn.imm) | static_cast<uint64_t>(static_cast<uint32_t>(second.imm)) << 32;
  }
}

Result<uint64_t> Interpreter::run(std::span<std::byte> context) {
  context_ = context;
  may_goto_left_ = kMayGotoBudget;
  jumps_ = 0;
  depth_ = 0;
  is_stopped_ = false;
  unrecorded_address_.reset();
  casts_.clear();
  auto result = call(0, {reinterpret_cast<uint64_t>(context.data())});
  for (SimMap& map : maps_) map.bury_removed();
  return result;
}

Result<uint64_t> Interpreter::call(uint32_t function_at, const Arguments& arguments) {
  if (depth_ == kMaxDepth) return fail("calls are nested too deeply");
  std::byte* stack = stacks_->data() + depth_ * kStackBytes;
  std::memset(stack, kPoison, kStackBytes);
  Registers registers;
  registers.fill(kDead);
  std::copy(arguments.begin(), arguments.end(), registers.begin() + 1);
  registers[10] = reinterpret_cast<uint64_t>(stack + kStackBytes);
  ++depth_;
  auto result = execute(function_at, registers);
  --depth_;
  return result;
}

tl::unexpected<Error> Interpreter::fault(uint32_t at, const Error& error) {
  if (error.code == kUnrecorded) {
    if (!is_stopped_) stopped_at_ = at;  // the innermost of the calls
    is_stopped_ = true;
    return tl::unexpected(error);
  }
  return fail(
      fmt::format("{}\n  in {} at {}: {}", error.message, program_.name, at, disassemble_one(program_.code, at)));
}

// The cases of one operation: by the register or the constant, in 64 and 32 bits. `arithmetic` and `holds` are
// specialized for each.
#define ALU_CASES(operation)                                                                         \
  case kAlu64 | (operation) | kReg:                                                                  \
    r[insn.dst] = arithmetic<uint64_t, int64_t>(operation, r[insn.dst], r[insn.src], insn.offset);   \
    break;                                                                                           \
  case kAlu64 | (operation):                                                                         \
    r[insn.dst] = arithmetic<uint64_t, int64_t>(operation, r[insn.dst], insn.constant, insn.offset); \
    break;                                                                                           \
  case kAlu32 | (operation) | kReg:                                                                  \
    r[insn.dst] = arithmetic<uint32_t, int32_t>(operation, static_cast<uint32_t>(r[insn.dst]),       \
                                                static_cast<uint32_t>(r[insn.src]), insn.offset);    \
    break;                                                                                           \
  case kAlu32 | (operation):                                                                         \
    r[insn.dst] = arithmetic<uint32_t, int32_t>(operation, static_cast<uint32_t>(r[insn.dst]),       \
                                                static_cast<uint32_t>(insn.constant), insn.offset);  \
    break;

#define JUMP_CASES(operation)                                                                                          \
  case kJmp | (operation) | kReg:                                                                                      \
    if (holds<uint64_t, int64_t>(operation, r[insn.dst], r[insn.src])) jump(insn.offset);                              \
    break;                                                                                                             \
  case kJmp | (operation):                                                                                             \
    if (holds<uint64_t, int64_t>(operation, r[insn.dst], insn.constant)) jump(insn.offset);                            \
    break;                                                                                                             \
  case kJmp32 | (operation) | kReg:                                                                                    \
    if (holds<uint32_t, int32_t>(operation, static_cast<uint32_t>(r[insn.dst]), static_cast<uint32_t>(r[insn.src])))   \
      jump(insn.offset);                                                                                               \
    break;                                                                                                             \
  case kJmp32 | (operation):                                                                                           \
    if (holds<uint32_t, int32_t>(operation, static_cast<uint32_t>(r[insn.dst]), static_cast<uint32_t>(insn.constant))) \
      jump(insn.offset);                                                                                               \
    break;

#define SWAP_CASES(bits) \
  case bits:             \
  case (bits) | kReg: r[insn.dst] = swap_bytes(insn.code, insn.imm, r[insn.dst]); break;

// Loads and stores of the program's own memory; step_memory() has all others, and the errors.
#define MEMORY_CASES(size, type)                                                                     \
  case kLdx | kModeMem | (size): {                                                                   \
    const uint64_t address = r[insn.src] + static_cast<uint64_t>(int64_t{insn.offset});              \
    if (const std::byte* own = own_bytes(address, sizeof(type), Access::kRead)) {                    \
      r[insn.dst] = load_bytes(own, sizeof(type));                                                   \
    } else if (const Status done = step_load(r, insn); !done) {                                      \
      return fault(at - 1, done.error());                                                            \
    }                                                                                                \
    break;                                                                                           \
  }                                                                                                  \
  case kStx | kModeMem | (size):                                                                     \
  case kSt | kModeMem | (size): {                                                                    \
    const uint64_t address = r[insn.dst] + static_cast<uint64_t>(int64_t{insn.offset});              \
    const auto value = static_cast<type>(class_of(insn.code) == kStx ? r[insn.src] : insn.constant); \
    std::byte* own = own_bytes(address, sizeof(type), Access::kWrite);                               \
    if (own == nullptr) return fault(at - 1, not_own("writes", sizeof(type), address));              \
    std::memcpy(own, &value, sizeof(type));                                                          \
    break;                                                                                           \
  }

Result<uint64_t> Interpreter::execute(uint32_t at, Registers& r) {
  const uint64_t frame_pointer = r[10];
  const auto jump = [&](int32_t distance) {
    at = static_cast<uint32_t>(int64_t{at} + distance);
    ++jumps_;
  };
  for (;;) {
    if (at >= code_.size()) return fail(fmt::format("{}: ran off the end", program_.name));
    if (jumps_ > kMaxJumps) return fail(fmt::format("{}: does not end", program_.name));
    const Decoded& insn = code_[at++];
    switch (insn.code) {
      ALU_CASES(kAdd)
      ALU_CASES(kSub)
      ALU_CASES(kMul)
      ALU_CASES(kDiv)
      ALU_CASES(kOr)
      ALU_CASES(kAnd)
      ALU_CASES(kLsh)
      ALU_CASES(kRsh)
      ALU_CASES(kNeg)
      ALU_CASES(kMod)
      ALU_CASES(kXor)
      ALU_CASES(kMov)
      ALU_CASES(kArsh)
      SWAP_CASES(kAlu64 | kEnd)
      SWAP_CASES(kAlu32 | kEnd)
      JUMP_CASES(kJeq)
      JUMP_CASES(kJgt)
      JUMP_CASES(kJge)
      JUMP_CASES(kJset)
      JUMP_CASES(kJne)
      JUMP_CASES(kJsgt)
      JUMP_CASES(kJsge)
      JUMP_CASES(kJlt)
      JUMP_CASES(kJle)
      JUMP_CASES(kJslt)
      JUMP_CASES(kJsle)
      case kJmp | kJa: jump(insn.offset); break;
      case kJmp32 | kJa: jump(insn.imm); break;
      case kJmp | kJcond:
        if (may_goto_left_ == 0) {
          jump(insn.offset);
        } else {
          --may_goto_left_;
        }
        break;
      case kJmp | kExit:
        return r[10] == frame_pointer ? Result<uint64_t>(r[0]) : fault(at - 1, {"writes the frame pointer"});
      case kLdImm64:
        r[insn.dst] = insn.constant;
        ++at;
        break;
      case kJmp | kCall:
        if (const Status done = step_call(at, r, insn); !done) return fault(at - 1, done.error());
        break;
        MEMORY_CASES(kByte, uint8_t)
        MEMORY_CASES(kHalf, uint16_t)
        MEMORY_CASES(kWord, uint32_t)
        MEMORY_CASES(kDouble, uint64_t)
      default:
        if (const Status done = step_memory(r, insn); !done) return fault(at - 1, done.error());
    }
  }
}

#undef ALU_CASES
#undef JUMP_CASES
#undef SWAP_CASES
#undef MEMORY_CASES

bool Interpreter::was_cast(uint64_t address) const {
  return std::ranges::any_of(casts_, [&](uint64_t start) { return address - start < kCastReach; });
}

bool Interpreter::read_anywhere(uint64_t address, std::span<std::byte> out) {
  if (const std::byte* own = own_bytes(address, out.size(), Access::kRead)) {
    std::memcpy(out.data(), own, out.size());
    return true;
  }
  return world_.memory.read_anywhere(address, out);
}

Status Interpreter::step_load(Registers& registers, const Decoded& insn) {
  const unsigned size = size_bytes(insn.code);
  const uint64_t address = registers[insn.src] + static_cast<uint64_t>(int64_t{insn.offset});
  const std::byte* own = own_bytes(address, size, Access::kRead);
  uint64_t value = 0;
  if (own != nullptr) {
    value = load_bytes(own, size);
  } else if (was_cast(address)) {
    std::array<std::byte, 8> buffer = {};
    if (read_anywhere(address, std::span(buffer).first(size))) value = load_bytes(buffer.data(), size);
  } else {
    return tl::unexpected(not_own("reads", size, address));
  }
  registers[insn.dst] = mode_of(insn.code) == kModeMemSigned ? sign_extend(value, size * 8) : value;
  return {};
}

Status Interpreter::step_memory(Registers& registers, const Decoded& insn) {
  if (class_of(insn.code) == kLdx) return step_load(registers, insn);
  if (class_of(insn.code) == kStx && mode_of(insn.code) == kModeAtomic) return step_atomic(registers, insn);
  return fail("not an instruction");
}

Status Interpreter::step_atomic(Registers& registers, const Decoded& insn) {
  const unsigned size = size_bytes(insn.code);
  const bool is_load = insn.imm == kLoadAcquire;
  uint64_t& src = registers[insn.src];
  const uint64_t address = (is_load ? src : registers[insn.dst]) + static_cast<uint64_t>(int64_t{insn.offset});
  std::byte* own = own_bytes(address, size, is_load ? Access::kRead : Access::kWrite);
  if (own == nullptr) return tl::unexpected(not_own("changes", size, address));
  if (address % size != 0) return fail(fmt::format("an atomic access to {:#x}, which is not aligned", address));
  const uint64_t old = load_bytes(own, size);
  uint64_t next = old;
  if (is_load) {
    registers[insn.dst] = old;
    return {};
  }
  switch (insn.imm) {
    case kXchg:
    case kStoreRelease: next = src; break;
    case kCmpxchg: {
      const uint64_t expected = size == 4 ? static_cast<uint32_t>(registers[0]) : registers[0];
      if (old == expected) next = src;
      registers[0] = old;
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

Status Interpreter::step_call(uint32_t next, Registers& registers, const Decoded& insn) {
  const Arguments arguments = {registers[1], registers[2], registers[3], registers[4], registers[5]};
  uint64_t result = 0;
  switch (insn.src) {
    case kCallHelper: result = TRY(helper(insn.imm, arguments)); break;
    case kCallFunction: result = TRY(call(static_cast<uint32_t>(int64_t{next} + insn.imm), arguments)); break;
    case kCallKfunc: result = TRY(kfunc(static_cast<uint32_t>(insn.imm), arguments)); break;
    default: return fail("not a call");
  }
  registers[0] = result;
  std::fill_n(registers.begin() + 1, arguments.size(), kDead);
  return {};
}

Result<uint64_t> Interpreter::kfunc(uint32_t id, const Arguments& a) {
  if (id == kfuncs_.rdonly_cast && id != 0) {
    casts_.push_back(a[0]);
    return a[0];
  }
  if (id == kfuncs_.map_sum_elem_count && id != 0) return TRY(map_of(a[0]))->size();
  if (id == kfuncs_.session_is_return && id != 0) return world_.is_return;
  if (id == kfuncs_.strstr && id != 0) return strstr(a);
  return fail(fmt::format("the kernel function {} is not simulated", id));
}

// ---- The kernel's helpers, as far as compiled programs call them.

namespace {

using ir::Helper;

constexpr uint64_t kTaiOffsetNs = 37'000'000'000;
constexpr uint64_t kNsPerJiffy = 4'000'000;
constexpr uint64_t kUserStackFlag = 1 << 8, kSkipMask = 0xff;
constexpr uint64_t kProgramAddress = 0xffff'ffff'a000'0000;
constexpr uint64_t kMaxIterations = 1 << 23;

uint64_t error(int code) { return static_cast<uint64_t>(-int64_t{code}); }

}  // namespace

Result<SimMap*> Interpreter::map_of(uint64_t handle) {
  const uint64_t offset = handle - reinterpret_cast<uint64_t>(maps_.data());
  if (offset % sizeof(SimMap) != 0 || offset / sizeof(SimMap) >= maps_.size()) return fail("r1 is not a map");
  return &maps_[offset / sizeof(SimMap)];
}

Result<std::span<std::byte>> Interpreter::bytes(uint64_t address, uint64_t size_bytes, Access access,
                                                std::string_view what) {
  std::byte* found = own_bytes(address, size_bytes, access);
  if (found == nullptr)
    return fail(fmt::format("{}: {} bytes at {:#x} are not the program's", what, size_bytes, address));
  return std::span(found, size_bytes);
}

tl::unexpected<Error> Interpreter::unrecorded_memory(uint64_t address) {
  unrecorded_address_ = address;
  return unrecorded("the memory that this reads");
}

namespace {

// Nothing is ever mapped in the first and the last 4 KB: reads there fail, as programs want it where they only clear
// memory.
bool may_be_mapped(uint64_t address) {
  constexpr uint64_t kUnmappedBytes = 1 << 12;
  return address >= kUnmappedBytes && address < -kUnmappedBytes;
}

// What a helper gives that recordings do not have; "" if they do.
std::string_view missing_of(Helper helper, const World& world) {
  switch (helper) {
    case Helper::get_current_pid_tgid:
    case Helper::get_current_uid_gid:
    case Helper::get_current_cgroup_id:
    case Helper::get_current_comm:
    case Helper::get_ns_current_pid_tgid: return world.has_task ? "" : "the task that ran then";
    case Helper::get_prandom_u32: return "the random number";
    case Helper::get_numa_node_id: return "the NUMA node";
    case Helper::jiffies64: return "the count of jiffies";
    case Helper::ktime_get_tai_ns: return "the time of the TAI clock";
    case Helper::get_current_task:
    case Helper::get_current_task_btf: return world.current_task != 0 ? "" : "the task_struct of the task";
    default: return "";
  }
}

}  // namespace

Result<uint64_t> Interpreter::helper(int32_t number, const Arguments& a) {
  if (world_.is_recorded)
    if (const std::string_view missing = missing_of(static_cast<Helper>(number), world_); !missing.empty())
      return unrecorded(missing);
  switch (static_cast<Helper>(number)) {
    case Helper::map_lookup_elem:
    case Helper::map_update_elem:
    case Helper::map_delete_elem:
    case Helper::map_lookup_percpu_elem:
    case Helper::for_each_map_elem:
    case Helper::task_storage_get: return map_helper(number, a);
    case Helper::probe_read_kernel:
    case Helper::probe_read_user:
    case Helper::copy_from_user:
    case Helper::probe_read_kernel_str:
    case Helper::probe_read_user_str:
    case Helper::probe_write_user: return read_helper(number, a);
    case Helper::get_stackid:
    case Helper::get_stack: return stack_helper(number, a);
    case Helper::loop: return loop(a);
    case Helper::strncmp: return strncmp(a);
    case Helper::ktime_get_ns:
    case Helper::ktime_get_boot_ns: return world_.now_ns;
    case Helper::ktime_get_tai_ns: return world_.now_ns + kTaiOffsetNs;
    case Helper::jiffies64: return world_.now_ns / kNsPerJiffy;
    case Helper::get_prandom_u32:
      world_.random = world_.random * 6364136223846793005 + 1442695040888963407;
      return world_.random >> 33;
    default: return task_helper(number, a);
  }
}

tl::unexpected<Error> Interpreter::unrecorded(std::string_view what, std::string_view hint) {
  return fail(fmt::format("{} was not recorded", what), kUnrecorded, std::string(hint));
}

Result<uint64_t> Interpreter::task_helper(int32_t number, const Arguments& a) {
  const Task& task = world_.task;
  switch (static_cast<Helper>(number)) {
    case Helper::get_smp_processor_id: return world_.cpu;
    case Helper::get_numa_node_id: return 0;
    case Helper::get_current_pid_tgid: return uint64_t{task.pid} << 32 | task.tid;
    case Helper::get_current_uid_gid: return uint64_t{task.gid} << 32 | task.uid;
    case Helper::get_current_cgroup_id: return task.cgroup;
    case Helper::get_current_task: return world_.current_task;
    case Helper::get_current_task_btf: casts_.push_back(world_.current_task); return world_.current_task;
    case Helper::get_attach_cookie: return world_.cookie;
    case Helper::get_current_comm: {
      const auto out = TRY(bytes(a[0], a[1], Access::kWrite, "get_current_comm"));
      if (out.empty()) return error(EINVAL);
      std::memset(out.data(), 0, out.size());
      std::memcpy(out.data(), task.comm.data(), std::min(task.comm.size(), std::min<size_t>(out.size() - 1, 15)));
      return 0;
    }
    case Helper::get_ns_current_pid_tgid: {
      const auto out = TRY(bytes(a[2], a[3], Access::kWrite, "get_ns_current_pid_tgid"));
      const uint32_t ids[2] = {task.tid, task.pid};
      std::memcpy(out.data(), ids, std::min(out.size(), sizeof(ids)));
      return 0;
    }
    case Helper::send_signal: world_.deeds.push_back(fmt::format("signal {}", a[0])); return 0;
    case Helper::send_signal_thread: world_.deeds.push_back(fmt::format("signal_thread {}", a[0])); return 0;
    case Helper::override_return:
      world_.deeds.push_back(fmt::format("override {}", static_cast<int64_t>(a[1])));
      return 0;
    case Helper::trace_printk: return 0;
    default: return fail(fmt::format("helper {} is not simulated", number));
  }
}

Result<uint64_t> Interpreter::map_helper(int32_t number, const Arguments& a) {
  SimMap& map = *TRY(map_of(a[0]));
  const auto which = static_cast<Helper>(number);
  if (which == Helper::for_each_map_elem) return for_each(map, a);
  if (which == Helper::task_storage_get)
    return reinterpret_cast<uint64_t>(map.task_value(world_.task.tid, (a[3] & 1) != 0));
  const auto key = TRY(bytes(a[1], map.shape().key_size, Access::kRead, "the key"));
  switch (which) {
    case Helper::map_lookup_elem: return reinterpret_cast<uint64_t>(map.lookup(key, world_.cpu));
    case Helper::map_lookup_percpu_elem:
      return reinterpret_cast<uint64_t>(map.lookup(key, static_cast<uint32_t>(a[2])));
    case Helper::map_delete_elem: return static_cast<uint64_t>(map.remove(key));
    default: break;
  }
  const auto value = TRY(bytes(a[2], map.shape().value_size, Access::kRead, "the value"));
  return static_cast<uint64_t>(map.update(key, value, a[3], world_.cpu));
}

// callback(map, key, value, context) until it gives 1. Goes over the keys there were at the start.
Result<uint64_t> Interpreter::for_each(SimMap& map, const Arguments& a) {
  if ((a[1] & kFunctionTag) != kFunctionTag) return fail("for_each_map_elem: r2 is not a function");
  uint64_t count = 0;
  for (std::vector<std::byte>& key : map.keys()) {
    std::byte* value = map.lookup(key, world_.cpu);
    if (value == nullptr) continue;
    const ScopedRegion region(world_.memory, key, true);
    ++count;
    const uint64_t stop =
        TRY(call(static_cast<uint32_t>(a[1] & ~kFunctionTag),
                 {a[0], reinterpret_cast<uint64_t>(key.data()), reinterpret_cast<uint64_t>(value), a[2]}));
    if (stop != 0) break;
  }
  return count;
}

Result<uint64_t> Interpreter::loop(const Arguments& a) {
  if ((a[1] & kFunctionTag) != kFunctionTag) return fail("loop: r2 is not a function");
  if (a[0] > kMaxIterations) return error(E2BIG);
  for (uint64_t i = 0; i < a[0]; ++i)
    if (TRY(call(static_cast<uint32_t>(a[1] & ~kFunctionTag), {i, a[2]})) != 0) return i + 1;
  return a[0];
}

Result<uint64_t> Interpreter::strncmp(const Arguments& a) {
  const auto first = TRY(bytes(a[0], a[1], Access::kRead, "strncmp"));
  std::vector<std::byte> second(a[1]);
  if (!read_anywhere(a[2], second)) return fail("strncmp: r3 is not a string");
  return static_cast<uint64_t>(int64_t{
      std::strncmp(reinterpret_cast<const char*>(first.data()), reinterpret_cast<const char*>(second.data()), a[1])});
}

// Where the second string begins in the first, or an error.
Result<uint64_t> Interpreter::strstr(const Arguments& a) {
  std::string texts[2];
  for (size_t i = 0; i < 2; ++i) {
    std::byte c{};
    for (uint64_t at = a[i]; read_anywhere(at, std::span(&c, 1)) && c != std::byte{0}; ++at)
      texts[i] += static_cast<char>(c);
  }
  const size_t found = texts[0].find(texts[1]);
  return found == std::string::npos ? error(ENOENT) : found;
}

Result<uint64_t> Interpreter::read_helper(int32_t number, const Arguments& a) {
  const auto which = static_cast<Helper>(number);
  if (which == Helper::probe_write_user) {
    const auto from = TRY(bytes(a[1], a[2], Access::kRead, "probe_write_user"));
    return world_.memory.write_foreign(a[0], from) ? 0 : error(EFAULT);
  }
  const auto out = TRY(bytes(a[0], a[1], Access::kWrite, "the read's destination"));
  const bool is_text = which == Helper::probe_read_kernel_str || which == Helper::probe_read_user_str;
  if (const size_t size = out.empty() ? 0 : world_.memory.read_lent(a[2], out, is_text); size > 0) {
    if (is_text) {
      if (size == out.size()) out.back() = std::byte{0};
      return size;
    }
    return 0;
  }
  if (is_text) {
    for (size_t i = 0; i < out.size(); ++i) {
      if (!read_anywhere(a[2] + i, out.subspan(i, 1))) {
        if (world_.is_recorded && may_be_mapped(a[2])) return unrecorded_memory(a[2]);
        std::memset(out.data(), 0, out.size());
        return error(EFAULT);
      }
      if (out[i] == std::byte{0}) return i + 1;
    }
    if (!out.empty()) out.back() = std::byte{0};
    return out.size();
  }
  if (read_anywhere(a[2], out)) return 0;
  if (world_.is_recorded && may_be_mapped(a[2])) return unrecorded_memory(a[2]);
  std::memset(out.data(), 0, out.size());
  return error(EFAULT);
}

Result<uint64_t> Interpreter::stack_helper(int32_t number, const Arguments& a) {
  const bool by_id = static_cast<Helper>(number) == Helper::get_stackid;
  const uint64_t flags = by_id ? a[2] : a[3];
  const bool is_user = (flags & kUserStackFlag) != 0;
  if (world_.is_recorded && !(is_user ? world_.has_user_stack : world_.has_kernel_stack))
    return is_user ? unrecorded("the user stack", "`espy record --ustack` records it")
                   : unrecorded("the kernel stack", "`espy record --kstack` records it");
  std::vector<uint64_t> all = is_user ? world_.user_stack : world_.kernel_stack;
  // Where no registers say where the event was, a stack begins with the program itself and with what ran it.
  const bool starts_here = program_.kind == program::ProgramKind::kRawTracepoint ||
                           program_.kind == program::ProgramKind::kTracingRawTracepoint;
  if (!is_user && starts_here && !all.empty()) all.insert(all.begin(), {kProgramAddress, kProgramAddress + 8});
  const size_t skip = std::min<size_t>(flags & kSkipMask, all.size());
  const std::span<const uint64_t> stack = std::span(all).subspan(skip);
  if (stack.empty()) return error(EFAULT);
  if (by_id) return static_cast<uint64_t>(TRY(map_of(a[1]))->stack_id(stack));
  const auto out = TRY(bytes(a[1], a[2], Access::kWrite, "get_stack"));
  const size_t size = std::min(out.size(), stack.size_bytes());
  std::memset(out.data(), 0, out.size());
  std::memcpy(out.data(), stack.data(), size);
  return size;
}

}  // namespace espy::simulator
