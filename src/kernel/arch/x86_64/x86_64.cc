// The System V calling convention (ABI, AMD64 supplement, 3.2.3), and that of rustc.
#include "kernel/arch/x86_64/x86_64.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/strings.h"
#include "kernel/arch/locations.h"

namespace espy::kernel::x86_64 {

namespace {

using types::Kind;
using types::LocationPiece;
using types::TypeId;
using types::ValueLocation;
using Op = types::LocationOp::Code;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kVectorRegisters = 8;

enum class Class : uint8_t { kNone, kInteger, kVector, kMemory };

// The class of each eightbyte of a value of at most 16 bytes; kMemory in the first for larger values.
using Classes = std::array<Class, 2>;

void merge(Class& into, Class with) {
  if (into == with || with == Class::kNone) return;
  into = into == Class::kNone                               ? with
         : into == Class::kMemory || with == Class::kMemory ? Class::kMemory
                                                            : Class::kInteger;
}

void classify(const types::Types& types, TypeId id, uint32_t offset_bytes, Classes& out);

// A bit field has the class of the words that its bits are in. A struct with an unaligned member is in memory.
void classify_member(const types::Types& types, const types::Member& member, uint32_t offset_bytes, Classes& out) {
  if (member.bit_size == 0) {
    const uint32_t align = types[member.type].align_bytes;
    if (align > 1 && member.offset_bytes() % align != 0) return merge(out[0], Class::kMemory);
    return classify(types, member.type, offset_bytes + member.offset_bytes(), out);
  }
  const uint32_t first = offset_bytes * 8 + member.offset_bits, last = first + member.bit_size - 1;
  for (uint32_t word = first / 64; word <= last / 64; ++word)
    word < out.size() ? merge(out[word], Class::kInteger) : merge(out[0], Class::kMemory);
}

void classify(const types::Types& types, TypeId id, uint32_t offset_bytes, Classes& out) {
  const types::Type& type = types[id];
  if (offset_bytes + type.size_bytes > 2 * kWordBytes) return merge(out[0], Class::kMemory);
  if (is_float(type)) {
    // `long double` has class X87, which is passed in memory.
    if (type.size_bytes > kWordBytes) return merge(out[0], Class::kMemory);
    return merge(out[offset_bytes / kWordBytes], Class::kVector);
  }
  switch (type.kind) {
    case Kind::kVoid:
    case Kind::kFunction: return;
    case Kind::kStruct:
      if (!type.complete) return merge(out[0], Class::kMemory);
      for (const types::Member& member : type.members) classify_member(types, member, offset_bytes, out);
      return;
    case Kind::kArray:
      for (uint32_t i = 0; i < type.count; ++i)
        classify(types, type.element, offset_bytes + i * types[type.element].size_bytes, out);
      return;
    default:
      for (uint32_t at = offset_bytes; at < offset_bytes + std::max(type.size_bytes, 1u); at += kWordBytes)
        merge(out[at / kWordBytes], Class::kInteger);
  }
}

Classes classes_of(const types::Types& types, const PassedValue& value) {
  Classes out = {Class::kNone, Class::kNone};
  if (value.is_by_reference)
    out[0] = Class::kInteger;
  else
    classify(types, value.type, 0, out);
  return out;
}

bool is_in_memory(const Classes& classes) { return classes[0] == Class::kMemory || classes[1] == Class::kMemory; }

// Whether a result is in the floating-point stack: long double, also as all of a struct. In arguments it is in memory.
bool is_x87(const types::Types& types, TypeId id) {
  const types::Type& type = types[id];
  if (type.kind == Kind::kArray) return type.count > 0 && is_x87(types, type.element);
  if (type.kind == Kind::kStruct && !type.members.empty())
    return std::ranges::all_of(type.members, [&](const types::Member& each) { return is_x87(types, each.type); });
  return is_float(type) && type.size_bytes > kWordBytes;
}

std::optional<ValueLocation> next_argument(const types::Types& types, const Arch& arch, Places& places,
                                           const PassedValue& value) {
  if (value.is_rust) return places.next_of_rust(types, value);
  const Classes classes = classes_of(types, value);
  if (value.is_by_reference) return places.by_address();
  if (classes == Classes{Class::kNone, Class::kNone}) return ValueLocation{{LocationPiece{}}};  // it is not passed
  const auto integers = static_cast<size_t>(std::ranges::count(classes, Class::kInteger));
  const auto vectors = static_cast<size_t>(std::ranges::count(classes, Class::kVector));
  const types::Type& type = types[value.type];
  const bool fits = integers <= places.integers_left() && vectors <= places.vectors_left();
  if (is_in_memory(classes) || !fits) return places.on_stack(type.size_bytes, type.align_bytes);
  const size_t first = places.integers;
  places.integers += integers;
  places.vectors += vectors;
  if (vectors == 0) return in_registers(arch.argument_offsets.subspan(first, integers), type.size_bytes);
  if (integers == 0) return std::nullopt;
  // One half is in a vector register.
  ValueLocation out = in_registers(arch.argument_offsets.subspan(first, integers), kWordBytes);
  const bool is_first = classes[0] == Class::kVector;
  const LocationPiece unreadable{.size_bytes = is_first ? kWordBytes : type.size_bytes - kWordBytes};
  if (is_first) out.pieces[0].size_bytes = type.size_bytes - kWordBytes;
  out.pieces.insert(is_first ? out.pieces.begin() : out.pieces.end(), unreadable);
  return out;
}

}  // namespace

std::vector<std::optional<ValueLocation>> argument_locations(const types::Types& types, const Arch& arch,
                                                             const std::vector<PassedValue>& arguments,
                                                             const PassedValue& result) {
  Places places(arch, kVectorRegisters);
  const bool is_in_memory_in_c =
      !result.is_rust && is_in_memory(classes_of(types, result)) && !is_x87(types, result.type);
  if (result.is_by_reference || is_in_memory_in_c) ++places.integers;
  std::vector<std::optional<ValueLocation>> out;
  for (const PassedValue& argument : arguments) out.push_back(next_argument(types, arch, places, argument));
  return out;
}

ResultPlace result_location(const types::Types& types, const Arch& arch, const PassedValue& result) {
  if (result.is_by_reference) return {at_register(arch.return_value_offset, 0)};
  const uint32_t registers[] = {arch.return_value_offset, arch.second_return_value_offset};
  if (result.is_rust) return rust_result(types, result.type, registers);
  if (is_x87(types, result.type)) return {std::nullopt, "is in the floating-point stack, which probes cannot read"};
  const Classes classes = classes_of(types, result);
  if (is_in_memory(classes)) return {at_register(arch.return_value_offset, 0)};
  if (std::ranges::count(classes, Class::kVector) > 0) return {std::nullopt, kInVectorRegister};
  if (classes == Classes{Class::kNone, Class::kNone}) return {ValueLocation{{LocationPiece{}}}};
  return {in_registers(registers, types[result.type].size_bytes)};
}

// ---- USDT operands in the assembler's AT&T syntax:
//   %rax               a register
//   $5                 a constant
//   -8(%rbp,%rax,4)    memory at base + index * scale + displacement, each of them optional
//   sym+4(%rip)        memory at a symbol of the file

namespace {

// The name in "%rax"; nullopt if `text` is no register.
std::optional<std::string> register_name(std::string_view text) {
  text = trim(text);
  if (!text.starts_with('%')) return std::nullopt;
  return std::string(text.substr(1));
}

// "-8", "sym", "sym+4", "-4+sym", "": adds numbers to the displacement, and takes at most one symbol.
bool parse_displacement(std::string_view text, UsdtOperand& out) {
  while (!text.empty()) {
    const bool is_negative = text.starts_with('-');
    if (is_negative || text.starts_with('+')) text.remove_prefix(1);
    const size_t end = text.find_first_of("+-");
    const std::string_view term = text.substr(0, end);
    text.remove_prefix(term.size());
    if (const auto number = parse_int(term)) {
      const auto displacement = static_cast<uint64_t>(out.displacement), added = static_cast<uint64_t>(*number);
      out.displacement = static_cast<int64_t>(is_negative ? displacement - added : displacement + added);
    } else if (!term.empty() && out.symbol.empty() && !is_negative && term.find_first_of("%:$ ") == term.npos) {
      out.symbol = term;
    } else {
      return false;
    }
  }
  return true;
}

// DISPLACEMENT(BASE,INDEX,SCALE), with or without the parenthesis.
bool parse_memory(std::string_view text, UsdtOperand& out) {
  out.kind = UsdtOperand::Kind::kMemory;
  const size_t open = text.find('(');
  if (!parse_displacement(text.substr(0, open), out)) return false;
  if (open == std::string_view::npos) return true;
  if (!text.ends_with(')')) return false;
  const std::vector<std::string_view> parts = split(text.substr(open + 1, text.size() - open - 2), ',');
  if (parts.size() > 3) return false;
  if (!trim(parts[0]).empty()) {
    const auto base = register_name(parts[0]);
    if (!base) return false;
    out.base = *base;
  }
  if (parts.size() > 1) {
    const auto index = register_name(parts[1]);
    if (!index) return false;
    out.index = *index;
  }
  const auto scale = parts.size() > 2 ? parse_int(trim(parts[2])) : 1;
  if (!scale || (*scale != 1 && *scale != 2 && *scale != 4 && *scale != 8)) return false;
  out.scale = static_cast<uint8_t>(*scale);
  return true;
}

}  // namespace

bool parse_usdt_operand(std::string_view operand, UsdtOperand& out) {
  if (const auto name = register_name(operand)) {
    if (name->find(':') != std::string::npos) return false;  // a segment: %fs:8
    out.kind = UsdtOperand::Kind::kRegister;
    out.base = *name;
    return true;
  }
  if (operand.starts_with('$')) {
    const auto constant = parse_int(operand.substr(1));
    if (!constant) return false;
    out.displacement = *constant;
    return true;
  }
  return parse_memory(operand, out);
}

std::string usdt_operand_with_displacement(std::string_view operand, int64_t displacement) {
  const size_t open = operand.find('(');
  return fmt::format("{}{}", displacement, open == operand.npos ? "" : operand.substr(open));
}

// "rax", "eax", "ax", "al", "ah", "r9d".
std::optional<uint32_t> usdt_register_offset(const Arch& arch, std::string_view name) {
  if (const auto whole = find_register(arch, name)) return whole->offset_bytes;
  const auto known = [&](const std::string& whole, uint32_t byte = 0) -> std::optional<uint32_t> {
    const auto found = find_register(arch, whole);
    return found ? std::optional(found->offset_bytes + byte) : std::nullopt;
  };
  const std::string text(name);
  const std::string front = text.substr(0, text.size() - 1);
  if (text.starts_with('e')) return known(text.substr(1));  // eax
  if (text.starts_with('r') && (text.ends_with('d') || text.ends_with('w') || text.ends_with('b'))) return known(front);
  if (text.size() == 3 && text.ends_with('l')) return known(front);           // sil
  if (text.size() == 2 && text.ends_with('l')) return known(front + "x");     // al
  if (text.size() == 2 && text.ends_with('h')) return known(front + "x", 1);  // ah
  return std::nullopt;
}

// ---- Code that the Go compiler generates (cmd/compile/abi-internal).

namespace {

// The last four bytes of a comparison with the stack's end: [r14+16] since Go 1.17, [rcx+16] before.
bool compares_with_stack_end(std::span<const uint8_t> instruction) {
  if (instruction.size() != 4 || instruction[3] != 0x10 || instruction[1] != 0x3b) return false;
  return instruction[2] == 0x66 || instruction[2] == 0x61;
}

}  // namespace

uint64_t find_go_stack_check_end(std::span<const uint8_t> code) {
  constexpr int kMaxInstructions = 7;
  bool has_compared = false;
  uint64_t at = 0;
  for (int i = 0; i < kMaxInstructions && at < code.size(); ++i) {
    const uint32_t length = instruction_length(code.subspan(at));
    if (length == 0) return 0;
    const auto instruction = code.subspan(at, length);
    const bool is_jump = instruction[0] == 0x76 || (instruction[0] == 0x0f && instruction[1] == 0x86);  // jbe
    if (is_jump && has_compared) return at + length;
    has_compared = compares_with_stack_end(instruction);
    at += length;
  }
  return 0;
}

// `ret`, also with a prefix that some compilers put in front, and `ret N`.
bool is_return(std::span<const uint8_t> instruction) {
  if (instruction.size() == 2 && (instruction[0] == 0xf2 || instruction[0] == 0xf3))
    instruction = instruction.subspan(1);
  return instruction.size() == 1 ? instruction[0] == 0xc3 : instruction.size() == 3 && instruction[0] == 0xc2;
}

// ---- Which instructions the kernel's uprobes cannot handle.

namespace {

// A uprobe's instruction is executed out of line or emulated (arch/x86/kernel/uprobes.c). The kernel does neither with
// an instruction that has a lock or a segment prefix; newer kernels except a `nop` of ten bytes. After a VEX or EVEX
// prefix it takes the opcode for one of the legacy map, where the same byte means something else: if that is a jump, a
// call or a return, the traced program crashes (vpbroadcastb is taken for `jp`, vpor for `jmp`); if it is not allowed
// there, the kernel refuses.
bool is_misread_behind_vex(unsigned opcode) {
  if (opcode >= 0x70 && opcode <= 0x7f) return true;  // jcc
  constexpr unsigned kOthers[] = {0x60, 0x61, 0x62, 0x66, 0x67, 0x6c, 0x6d, 0x6e, 0x6f, 0x90, 0x9a, 0x9d, 0xc2,
                                  0xc3, 0xca, 0xcb, 0xd4, 0xd5, 0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea,
                                  0xeb, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf4, 0xfa, 0xfb, 0xff};
  return std::ranges::find(kOthers, opcode) != std::end(kOthers);
}

// The kernel has no place for these (good_insns_64 in arch/x86/kernel/uprobes.c), and puts no probe there without a
// word; or it steps over them in a wrong way: `pushf` pushes the trap flag, and `syscall` returns to where it was
// copied.
bool is_unsuitable(unsigned opcode, unsigned second, bool has_operand_size) {
  constexpr unsigned kOneByte[] = {0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x6c,
                                   0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0x9c, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5, 0xd6, 0xe4,
                                   0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb};
  constexpr unsigned kTwoBytes[] = {0x05, 0x07, 0x34, 0x35};  // syscall, sysret, sysenter, sysexit
  if (std::ranges::find(kOneByte, opcode) != std::end(kOneByte)) return true;
  if (opcode == 0x0f && std::ranges::find(kTwoBytes, second) != std::end(kTwoBytes)) return true;
  const bool is_branch = opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb || (opcode >= 0x70 && opcode <= 0x7f) ||
                         (opcode == 0x0f && second >= 0x80 && second <= 0x8f);
  return has_operand_size && is_branch;  // branch_setup_xol_ops()
}

}  // namespace

bool can_be_stepped(std::span<const std::byte>, std::span<const std::byte> code) {
  const auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  bool has_segment = false, has_operand_size = false;
  for (size_t i = 0; i < code.size(); ++i) {
    switch (byte(i)) {
      case 0xf0: return false;  // lock
      case 0x26:
      case 0x2e:
      case 0x36:
      case 0x3e: has_segment = true; break;  // es, cs, ss, ds
      case 0x66: has_operand_size = true; break;
      case 0x64:
      case 0x65:
      case 0x67:
      case 0xf2:
      case 0xf3: break;  // other prefixes
      case 0xc5: return !is_misread_behind_vex(byte(i + 2));
      case 0xc4: return !is_misread_behind_vex(byte(i + 3));
      case 0x62: return !is_misread_behind_vex(byte(i + 4));
      default: {
        const size_t at = (byte(i) & 0xf0) == 0x40 ? i + 1 : i;  // behind a REX prefix
        return !has_segment && !is_unsuitable(byte(at), byte(at + 1), has_operand_size);
      }
    }
  }
  return true;
}

// insn_is_nop() in the kernel, with a length of five bytes. Tried on Linux 6.18 with each of these prefixes; `jmp` to
// the next instruction, and `lea` and `mov` of a register to itself, are not replaced.
bool is_nop5(std::span<const uint8_t> code) {
  constexpr uint32_t kCallBytes = 5;
  if (instruction_length(code) != kCallBytes) return false;
  const auto is_prefix = [](uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || (byte & 0xf0) == 0x40;  // REX
  };
  const auto opcode = std::ranges::find_if_not(code.first(kCallBytes), is_prefix);
  const auto rest = code.subspan(static_cast<size_t>(opcode - code.begin()));
  return rest[0] == 0x90 || (rest[0] == 0x0f && rest[1] == 0x1f);
}

bool is_nop10(std::span<const uint8_t> code) {
  constexpr uint8_t kNop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
  return code.size() >= std::size(kNop10) && std::ranges::equal(code.first(std::size(kNop10)), kNop10);
}

// branch_setup_xol_ops() and push_setup_xol_ops() in arch/x86/kernel/uprobes.c
bool is_emulated(std::span<const std::byte> code) {
  const auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  const auto is_push = [&](size_t at) { return byte(at) >= 0x50 && byte(at) <= 0x57; };
  switch (byte(0)) {
    case 0x90:                     // nop
    case 0xe8:                     // call
    case 0xe9:                     // jmp
    case 0xeb: return true;        // jmp
    case 0x41: return is_push(1);  // of a new register
    case 0x66: return byte(1) == 0x90 || (byte(1) == 0x0f && byte(2) == 0x1f);
    case 0x0f: return byte(1) == 0x1f || (byte(1) >= 0x80 && byte(1) <= 0x8f);  // long nop, jcc
    default: return is_push(0) || (byte(0) >= 0x70 && byte(0) <= 0x7f);         // jcc
  }
}

}  // namespace espy::kernel::x86_64

namespace espy::kernel {

namespace x86_64 {
namespace {

// Names of the kernel, and of the processor's manual.
constexpr Register kRegisters[] = {
    {"r15", at(kR15)},        {"r14", at(kR14)},         {"r13", at(kR13)}, {"r12", at(kR12)}, {"bp", at(kBp)},
    {"bx", at(kBx)},          {"r11", at(kR11)},         {"r10", at(kR10)}, {"r9", at(kR9)},   {"r8", at(kR8)},
    {"ax", at(kAx)},          {"cx", at(kCx)},           {"dx", at(kDx)},   {"si", at(kSi)},   {"di", at(kDi)},
    {"orig_ax", at(kOrigAx)}, {"orig_rax", at(kOrigAx)}, {"ip", at(kIp)},   {"pc", at(kIp)},   {"cs", at(kCs)},
    {"flags", at(kFlags)},    {"sp", at(kSp)},           {"ss", at(kSs)},   {"rbp", at(kBp)},  {"rbx", at(kBx)},
    {"rax", at(kAx)},         {"rcx", at(kCx)},          {"rdx", at(kDx)},  {"rsi", at(kSi)},  {"rdi", at(kDi)},
    {"rip", at(kIp)},         {"eflags", at(kFlags)},    {"rsp", at(kSp)},
};

// By DWARF number; the last one is the return address.
constexpr uint32_t kDwarf[] = {at(kAx), at(kDx),  at(kCx),  at(kBx),  at(kSi),  at(kDi),  at(kBp),  at(kSp), at(kR8),
                               at(kR9), at(kR10), at(kR11), at(kR12), at(kR13), at(kR14), at(kR15), at(kIp)};
constexpr uint32_t kArguments[] = {at(kDi), at(kSi), at(kDx), at(kCx), at(kR8), at(kR9)};
// The `syscall` instruction overwrites cx, so r10 has the fourth argument.
constexpr uint32_t kSyscallArguments[] = {at(kDi), at(kSi), at(kDx), at(kR10), at(kR8), at(kR9)};
constexpr uint64_t kCalleeSaved[] = {kDwarfBx, kDwarfBp, kDwarfR12, kDwarfR12 + 1, kDwarfR12 + 2, kDwarfR12 + 3};
constexpr std::string_view kThreadPointer[] = {"thread", "fsbase"};
constexpr std::string_view kStatus[] = {"thread_info", "status"};

// mov %rdi,-8(%rsp); nop of five bytes; mov -8(%rsp),%rax; ret
constexpr uint8_t kNop5InRedZone[] = {0x48, 0x89, 0x7c, 0x24, 0xf8, 0x0f, 0x1f, 0x44,
                                      0x00, 0x00, 0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3};
// The same with the nop of ten bytes: nopw %cs:0x0(%rax,%rax)
constexpr uint8_t kNop10InRedZone[] = {0x48, 0x89, 0x7c, 0x24, 0xf8, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00,
                                       0x00, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3};
constexpr uint32_t kNopOffset = 5;

constexpr Syscall kSyscalls[] = {
#define SYSCALL(number, name, tracepoint) {number, name, tracepoint},
#include "kernel/arch/x86_64/syscalls.def"
#undef SYSCALL
};
static_assert(std::ranges::is_sorted(kSyscalls, {}, &Syscall::number));

// Variant II: the executable's variables end where the thread pointer points.
int64_t thread_local_start(uint64_t size_bytes, uint64_t align_bytes) {
  return -static_cast<int64_t>((size_bytes + align_bytes - 1) / align_bytes * align_bytes);
}

constexpr UnwindConvention kUnwind = {
    .stack_pointer = kDwarfSp,
    .frame_pointer = kDwarfBp,
    .return_address = kDwarfReturnAddress,
    // rsp + 8 + ((rip & 15) >= 11) * 8: an entry of .plt pushes a number in its middle.
    .plt_cfa = std::string_view("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 11),
    .plt_entry_bytes = 16,
    .plt_pushed_from_bytes = 11,
    // struct rt_sigframe after `ret` has popped the trampoline's address: uc.uc_mcontext (asm/sigcontext.h).
    .signal_frame = {.frame_pointer_bytes = 120, .stack_pointer_bytes = 160, .instruction_pointer_bytes = 168},
};

// Since Go 1.17.
constexpr uint32_t kGoArguments[] = {at(kAx), at(kBx), at(kCx), at(kDi), at(kSi), at(kR8), at(kR9), at(kR10), at(kR11)};

constexpr ConstantGroup kAbiConstants[] = {
#define GROUP(prefix, names) {prefix, names},
#include "kernel/arch/x86_64/abi_constants.def"
#undef GROUP
};

}  // namespace
}  // namespace x86_64

using namespace x86_64;

constexpr Arch kAmd64 = {
    .name = "x86_64",
    .package_name = "amd64",
    .elf_machine = EM_X86_64,
    .source_directory = "x86",
    .library_directory = "x86_64-linux-gnu",
    .library_cache_abi = 0x0300,
    .page_size_bytes = 4096,
    .has_ordered_stores = true,  // TSO; the JIT keeps the order
    .registers = kRegisters,
    .pt_regs_size_bytes = at(kSlots),
    .stack_pointer_offset = at(kSp),
    .frame_pointer_offset = at(kBp),
    .instruction_pointer_offset = at(kIp),
    .user_mode = RegisterValue{at(kCs), 3, 3},  // the privilege level, in the code segment's low bits
    .thread_pointer = kThreadPointer,
    .syscalls = kSyscalls,
    .syscall_number_offset = at(kOrigAx),
    .syscall_number_bytes = 4,  // the kernel ignores the rest, which a program may set
    .syscall_argument_offsets = kSyscallArguments,
    .compat_task = RegisterValue{at(kCs), 0x23},  // __USER32_CS
    .compat_call = TaskFlag{kStatus, 2},          // TS_COMPAT
    .abi_constants = kAbiConstants,
    .argument_offsets = kArguments,
    .return_value_offset = at(kAx),
    .second_return_value_offset = at(kDx),
    .stack_argument_start_bytes = 8,  // the return address is on top
    .return_address_bytes = 8,
    .dwarf_offsets = kDwarf,
    .callee_saved = kCalleeSaved,
    .argument_locations = argument_locations,
    .result_location = result_location,
    .thread_local_start = thread_local_start,
    .unwind = kUnwind,
    .signal_trampoline = "__restore_rt",
    .tracepoint_frames = 0,  // those of distributions have CONFIG_UNWINDER_ORC
    .max_instruction_bytes = 15,
    .callable_nop = ProbedNop{is_nop5, kNop5InRedZone, kNopOffset},
    .prefixed_nop = ProbedNop{is_nop10, kNop10InRedZone, kNopOffset},
    .can_be_stepped = can_be_stepped,
    .instruction_length = instruction_length,
    .usdt = {.parse = parse_usdt_operand,
             .with_displacement = usdt_operand_with_displacement,
             .register_offset = usdt_register_offset},
    .go = {.argument_offsets = kGoArguments,
           .vector_register_count = 15,
           .stack_argument_start_bytes = 8,
           .goroutine = Register{"r14", at(kR14)},
           .find_stack_check_end = find_go_stack_check_end,
           .is_return = is_return},
};

}  // namespace espy::kernel
