#include "kernel/arch/x86_64/x86_64.h"

#include <elf.h>

#include <algorithm>
#include <iterator>

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
