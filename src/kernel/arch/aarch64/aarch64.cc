// The procedure call standard (AAPCS64, 6.8.2 "Parameter passing rules" and 6.9 "Result return"), with the Linux
// compilers' treatment of empty classes, and that of rustc.
#include "kernel/arch/aarch64/aarch64.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "kernel/arch/locations.h"

namespace espy::kernel::aarch64 {

namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kMostInRegisters = 16;
constexpr uint32_t kVectorRegisters = 8;
constexpr const char* kNoAddress = "is in memory at an address that the function does not return";

// The floating-point members of a value: of one size, at most four, and nothing else.
struct Floats {
  uint32_t count = 0;
  uint32_t size_bytes = 0;
  bool are_all = true;
};

// The members of a union overlap: the largest count is that of the value.
void add_floats(const types::Types& types, TypeId id, Floats& out) {
  const types::Type& type = types[id];
  switch (type.kind) {
    case Kind::kFloat:
      out.are_all &= is_float(type);
      out.are_all &= out.size_bytes == 0 || out.size_bytes == type.size_bytes;
      out.size_bytes = type.size_bytes;
      ++out.count;
      return;
    case Kind::kStruct: {
      const uint32_t before = out.count;
      uint32_t most = before;
      for (const types::Member& member : type.members) {
        if (type.is_union) out.count = before;
        add_floats(types, member.type, out);
        most = std::max(most, out.count);
      }
      out.count = most;
      out.are_all &= type.complete;
      return;
    }
    case Kind::kArray: {
      const uint32_t before = out.count;
      if (type.count > 0) add_floats(types, type.element, out);
      out.count = before + std::min<uint32_t>(type.count, kMostInRegisters) * (out.count - before);
      return;
    }
    default: out.are_all = false;
  }
}

// The vector registers that a value takes: 1 for a number, 1 to 4 for a homogeneous aggregate, 0 for other values.
uint32_t vector_registers_of(const types::Types& types, const PassedValue& value) {
  constexpr uint32_t kMostMembers = 4;
  if (value.is_by_reference) return 0;
  Floats found;
  add_floats(types, value.type, found);
  const bool has_padding = found.count * found.size_bytes != types[value.type].size_bytes;
  return found.are_all && found.count <= kMostMembers && !has_padding ? found.count : 0;
}

bool is_copied_to_memory(const types::Types& types, const PassedValue& value) {
  const types::Type& type = types[value.type];
  return value.is_by_reference ||
         (type.kind == Kind::kStruct && (!type.complete || type.size_bytes > kMostInRegisters));
}

uint32_t words(uint32_t size_bytes) { return (size_bytes + kWordBytes - 1) / kWordBytes; }

std::optional<ValueLocation> next_argument(const types::Types& types, const Arch& arch, Places& places,
                                           const PassedValue& value) {
  if (value.is_rust) return places.next_of_rust(types, value);
  const types::Type& type = types[value.type];
  if (const uint32_t count = vector_registers_of(types, value)) {
    if (count <= places.vectors_left()) {
      places.vectors += count;
      return std::nullopt;
    }
    places.vectors = kVectorRegisters;
    return places.on_stack(type.size_bytes, type.align_bytes);
  }
  if (is_copied_to_memory(types, value)) return places.by_address();
  if (type.size_bytes == 0) return ValueLocation{{LocationPiece{}}};  // not passed
  // In the next registers; on the stack, as all after it, if it does not fit in those left.
  const size_t count = words(type.size_bytes);
  if (type.align_bytes > kWordBytes) places.integers = (places.integers + 1) / 2 * 2;
  if (places.integers + count > arch.argument_offsets.size()) {
    places.integers = arch.argument_offsets.size();
    return places.on_stack(type.size_bytes, type.align_bytes);
  }
  places.integers += count;
  return in_registers(arch.argument_offsets.subspan(places.integers - count, count), type.size_bytes);
}

}  // namespace

// The address of a result in memory is in x8, which is no argument.
std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue&) {
  Places places(arch, kVectorRegisters);
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(next_argument(types, arch, places, argument));
  return out;
}

// A function need not preserve x8.
ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  const uint32_t size = types[result.type].size_bytes;
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  if (result.is_rust && !result.is_by_reference) return rust_result(types, result.type, registers);
  if (vector_registers_of(types, result) > 0) return {std::nullopt, kInVectorRegister};
  if (is_copied_to_memory(types, result)) return {std::nullopt, kNoAddress};
  if (size == 0) return {ValueLocation{{LocationPiece{}}}};
  return {in_registers(registers, size)};
}

// ---- USDT operands in the assembler's syntax, as GCC and Clang write them:
//   x0, w1, sp         a register
//   5, #5              a constant
//   [x29, -8]          memory at a register and a displacement; [sp], [sp,#16]
//   [x0, x1, lsl 3]    memory at a register and another one, which may be shifted
// An operand at a symbol (`:lo12:`), or with a register that is extended (`sxtw`), is not understood.

namespace {

// "5", "#5", "#-0x8".
std::optional<int64_t> parse_number(std::string_view text) {
  text = trim(text);
  if (text.starts_with('#')) text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const auto number = parse_int(text);
  if (!number) return std::nullopt;
  return is_negative ? static_cast<int64_t>(-static_cast<uint64_t>(*number)) : *number;
}

bool is_64bit_register(std::string_view text) {
  if (text == "sp") return true;
  if (!text.starts_with('x')) return false;
  const auto number = parse_int(text.substr(1));
  return number && *number >= 0 && *number < kSp;
}

// "lsl 3", "lsl #3": the factor; nullopt for other extensions.
std::optional<uint8_t> parse_shift(std::string_view text) {
  text = trim(text);
  if (!text.starts_with("lsl")) return std::nullopt;
  const auto bits = parse_number(text.substr(3));
  if (!bits || *bits < 0 || *bits > 4) return std::nullopt;
  return static_cast<uint8_t>(1 << *bits);
}

// What is between the brackets.
bool parse_memory(std::string_view text, UsdtOperand& out) {
  out.kind = UsdtOperand::Kind::kMemory;
  const std::vector<std::string_view> parts = split(text, ',');
  if (!is_64bit_register(trim(parts[0]))) return false;
  out.base = trim(parts[0]);
  if (parts.size() == 1) return true;
  if (const auto displacement = parse_number(parts[1])) {
    out.displacement = *displacement;
    return parts.size() == 2;
  }
  if (parts.size() > 3 || !is_64bit_register(trim(parts[1]))) return false;
  out.index = trim(parts[1]);
  const auto scale = parts.size() == 3 ? parse_shift(parts[2]) : 1;
  if (!scale) return false;
  out.scale = *scale;
  return true;
}

}  // namespace

bool parse_usdt_operand(std::string_view operand, UsdtOperand& out) {
  operand = trim(operand);
  if (operand.starts_with('['))
    return operand.ends_with(']') && parse_memory(operand.substr(1, operand.size() - 2), out);
  if (const auto constant = parse_number(operand)) {
    out.displacement = *constant;
    return true;
  }
  if (operand == "xzr" || operand == "wzr") return true;  // the constant 0
  if (operand.empty() || operand.find_first_of("[], :!") != operand.npos) return false;
  out.kind = UsdtOperand::Kind::kRegister;
  out.base = operand;
  return true;
}

std::string usdt_operand_with_displacement(std::string_view operand, int64_t displacement) {
  return fmt::format("{}, {}]", operand.substr(0, operand.find_first_of(",]")), displacement);
}

// "x0", "w0", "sp".
std::optional<uint32_t> usdt_register_offset(const Arch& arch, std::string_view name) {
  const std::string whole =
      name.starts_with('w') ? name == "wsp" ? "sp" : "x" + std::string(name.substr(1)) : std::string(name);
  const auto found = find_register(arch, whole);
  return found ? std::optional(found->offset_bytes) : std::nullopt;
}

// ---- Code that the Go compiler generates (cmd/compile/abi-internal, cmd/internal/obj/arm64).

// The check loads the end of the stack from the goroutine, `ldr xN, [x28, #16]`, compares, and branches by `b.ls` to
// the code that grows the stack. Before that, large frames branch by `b.lo`.
uint64_t find_go_stack_check_end(std::span<const uint8_t> code) {
  constexpr uint64_t kMaxBytes = 10 * 4;
  constexpr uint32_t kLoad = 0xf9400b80, kLoadMask = 0xffffffe0, kBranchIfLowerOrSame = 0x54000009,
                     kBranchMask = 0xff00001f;
  bool has_loaded = false;
  for (uint64_t at = 0; at < kMaxBytes && at < code.size(); at += 4) {
    const auto instruction = instruction_at(code.subspan(at));
    if (!instruction) return 0;
    if (has_loaded && (*instruction & kBranchMask) == kBranchIfLowerOrSame) return at + 4;
    has_loaded |= (*instruction & kLoadMask) == kLoad;
  }
  return 0;
}

// `ret`, also of another register, and those that authenticate the address: retaa, retab.
bool is_return(std::span<const uint8_t> instruction) {
  const uint32_t word = instruction_at(instruction).value_or(0);
  return (word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff;
}

}  // namespace espy::kernel::aarch64

namespace espy::kernel {

namespace aarch64 {
namespace {

// Names of the processor's manual; r0 to r30, as bpftrace has them; and names by use (AAPCS64, 6.1.1).
constexpr Register kRegisters[] = {
    {"x0", at(0)},
    {"x1", at(1)},
    {"x2", at(2)},
    {"x3", at(3)},
    {"x4", at(4)},
    {"x5", at(5)},
    {"x6", at(6)},
    {"x7", at(7)},
    {"x8", at(8)},
    {"x9", at(9)},
    {"x10", at(10)},
    {"x11", at(11)},
    {"x12", at(12)},
    {"x13", at(13)},
    {"x14", at(14)},
    {"x15", at(15)},
    {"x16", at(16)},
    {"x17", at(17)},
    {"x18", at(18)},
    {"x19", at(19)},
    {"x20", at(20)},
    {"x21", at(21)},
    {"x22", at(22)},
    {"x23", at(23)},
    {"x24", at(24)},
    {"x25", at(25)},
    {"x26", at(26)},
    {"x27", at(27)},
    {"x28", at(28)},
    {"x29", at(kFramePointer)},
    {"x30", at(kLink)},
    {"fp", at(kFramePointer)},
    {"lr", at(kLink)},
    {"sp", at(kSp)},
    {"pc", at(kPc)},
    {"pstate", at(kState)},
    {"orig_x0", at(kOrigX0)},
    {"syscallno", at(kSyscall), 4},
    {"r0", at(0)},
    {"r1", at(1)},
    {"r2", at(2)},
    {"r3", at(3)},
    {"r4", at(4)},
    {"r5", at(5)},
    {"r6", at(6)},
    {"r7", at(7)},
    {"r8", at(8)},
    {"r9", at(9)},
    {"r10", at(10)},
    {"r11", at(11)},
    {"r12", at(12)},
    {"r13", at(13)},
    {"r14", at(14)},
    {"r15", at(15)},
    {"r16", at(16)},
    {"r17", at(17)},
    {"r18", at(18)},
    {"r19", at(19)},
    {"r20", at(20)},
    {"r21", at(21)},
    {"r22", at(22)},
    {"r23", at(23)},
    {"r24", at(24)},
    {"r25", at(25)},
    {"r26", at(26)},
    {"r27", at(27)},
    {"r28", at(28)},
    {"r29", at(kFramePointer)},
    {"r30", at(kLink)},
};

// By DWARF number (DWARF for the Arm 64-bit Architecture, 4.1): x0 to x30, sp, pc.
constexpr std::array<uint32_t, 33> kDwarf = [] {
  std::array<uint32_t, 33> out = {};
  for (uint32_t i = 0; i < out.size(); ++i) out[i] = at(i);
  return out;
}();
constexpr uint32_t kDwarfSp = 31;
constexpr uint32_t kArguments[] = {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)};
// The result of the call overwrites x0; the kernel keeps the first argument (arch/arm64/include/asm/syscall.h).
constexpr uint32_t kSyscallArguments[] = {at(kOrigX0), at(1), at(2), at(3), at(4), at(5)};
constexpr uint64_t kCalleeSaved[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, kFramePointer};
// The kernel writes it when the thread is created, and when it leaves a CPU.
constexpr std::string_view kThreadPointer[] = {"thread", "uw", "tp_value"};

constexpr Syscall kSyscalls[] = {
#define SYSCALL(number, name, tracepoint) {number, name, tracepoint},
#include "kernel/arch/aarch64/syscalls.def"
#undef SYSCALL
};
static_assert(std::ranges::is_sorted(kSyscalls, {}, &Syscall::number));

// Variant I: two words of the thread control block, then the executable's variables.
int64_t thread_local_start(uint64_t, uint64_t align_bytes) {
  constexpr uint64_t kControlBlockBytes = 16;
  return static_cast<int64_t>((kControlBlockBytes + align_bytes - 1) / align_bytes * align_bytes);
}

// A frame record, which x29 points to, has x29 and x30 of the caller (AAPCS64, 6.4.6). The signal trampoline is in the
// vDSO and has no call frame information; a handler runs on struct rt_sigframe (arch/arm64/kernel/signal.c): siginfo of
// 128 bytes, then a ucontext, whose uc_mcontext at 176 has the registers from its second word on (asm/sigcontext.h).
constexpr int64_t kSavedRegisters = 128 + 176 + 8;
constexpr UnwindConvention kUnwind = {
    .stack_pointer = kDwarfSp,
    .frame_pointer = kFramePointer,
    .return_address = kLink,
    .signal_frame = {.frame_pointer_bytes = kSavedRegisters + at(kFramePointer),
                     .stack_pointer_bytes = kSavedRegisters + at(kSp),
                     .instruction_pointer_bytes = kSavedRegisters + at(kPc),
                     .link_register_bytes = kSavedRegisters + at(kLink)},
};

constexpr uint32_t kGoArguments[] = {at(0), at(1), at(2),  at(3),  at(4),  at(5),  at(6),  at(7),
                                     at(8), at(9), at(10), at(11), at(12), at(13), at(14), at(15)};

constexpr ConstantGroup kAbiConstants[] = {
#define GROUP(prefix, names) {prefix, names},
#include "kernel/arch/aarch64/abi_constants.def"
#undef GROUP
};

}  // namespace
}  // namespace aarch64

using namespace aarch64;

constexpr Arch kArm64 = {
    .name = "aarch64",
    .package_name = "arm64",
    .elf_machine = EM_AARCH64,
    .source_directory = "arm64",
    .library_directory = "aarch64-linux-gnu",
    .library_cache_abi = 0x0a00,
    .page_size_bytes = 4096,
    .has_ordered_stores = false,
    .registers = kRegisters,
    .pt_regs_size_bytes = at(kSlots),
    .stack_pointer_offset = at(kSp),
    .frame_pointer_offset = at(kFramePointer),
    .instruction_pointer_offset = at(kPc),
    .user_mode = RegisterValue{at(kState), 0, 0xf},  // PSR_MODE_EL0t; the same in 32-bit tasks
    .thread_pointer = kThreadPointer,
    .syscalls = kSyscalls,
    .syscall_number_offset = at(kSyscall),
    .syscall_number_bytes = 4,
    .syscall_argument_offsets = kSyscallArguments,
    .compat_task = RegisterValue{at(kState), 0x10, 0x10},  // PSR_MODE32_BIT
    .abi_constants = kAbiConstants,
    .argument_offsets = kArguments,
    .return_value_offset = at(0),
    .second_return_value_offset = at(1),
    .link_register_offset = at(kLink),
    // Pointer authentication signs an address in the bits above those of user space: 48 in kernels of distributions,
    // and addresses beyond them are mapped only on request (Documentation/arch/arm64/memory.rst).
    .code_address_mask = (uint64_t{1} << 48) - 1,
    .dwarf_offsets = kDwarf,
    .callee_saved = kCalleeSaved,
    .argument_locations = argument_locations,
    .result_location = result_location,
    .thread_local_start = thread_local_start,
    .unwind = kUnwind,
    .signal_trampoline = "__kernel_rt_sigreturn",
    .tracepoint_frames = 1,  // all have CONFIG_FRAME_POINTER
    .max_instruction_bytes = 4,
    .can_be_stepped = can_be_stepped,
    .step_context_bytes = 128,
    .instruction_length = instruction_length,
    .usdt = {.parse = parse_usdt_operand,
             .with_displacement = usdt_operand_with_displacement,
             .register_offset = usdt_register_offset},
    .go = {.argument_offsets = kGoArguments,
           .vector_register_count = 16,
           .stack_argument_start_bytes = 8,  // the word at the stack pointer is for the link register
           .goroutine = Register{"x28", at(28)},
           .find_stack_check_end = find_go_stack_check_end,
           .is_return = is_return},
};

}  // namespace espy::kernel
