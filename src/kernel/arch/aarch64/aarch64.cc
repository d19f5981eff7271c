#include "kernel/arch/aarch64/aarch64.h"

#include <elf.h>

#include <algorithm>
#include <array>

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
