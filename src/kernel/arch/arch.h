// What depends on the CPU: registers, calling conventions, operands of USDT probes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "types/type.h"
#include "types/value_location.h"

namespace espy::kernel {

// ---- Interface of a CPU's calling convention: where functions of C, C++ and Rust find their arguments and leave their
// result, for addresses at which debug information does not say.

struct Arch;

struct PassedValue {
  types::TypeId type;  // complete
  bool is_by_reference = false;
  bool is_rust = false;  // rustc passes a pair of numbers in two registers, however small; its ABI is unspecified
};

// Locations at the function's entry, one for each argument; nullopt for an argument in a vector register.
using ArgumentLocations = std::vector<std::optional<types::ValueLocation>> (*)(
    const types::Types& types, const Arch& arch, const std::vector<PassedValue>& arguments, const PassedValue& result);

constexpr const char* kInVectorRegister = "is in a vector register, which probes cannot read";

struct ResultPlace {
  std::optional<types::ValueLocation> place;
  std::string_view why = {};  // if there is none: kInVectorRegister, or another predicate of the value
};

// The location right after the return.
using ResultLocation = ResultPlace (*)(const types::Types& types, const Arch& arch, const PassedValue& result);

// ---- How rustc passes values.

// Whether the place of an argument or a result is the same in all versions of rustc, and debug information gives it.
bool is_known_in_rust(const types::Types& types, const PassedValue& value);

// ---- Operands of USDT probes, which are in the syntax of the CPU's assembler.

struct Arch;

struct UsdtOperand {
  enum class Kind : uint8_t { kRegister, kConstant, kMemory };
  Kind kind = Kind::kConstant;
  uint8_t size_bytes = 8;
  bool is_signed = false;
  std::string base;   // a register by its assembler name; empty if memory has no base
  std::string index;  // empty if none
  uint8_t scale = 1;
  std::string symbol;        // whose address is added to `displacement`; empty if none
  int64_t displacement = 0;  // or the constant
};

struct UsdtSyntax {
  // Parses an operand without its size ("SIZE@") into `out`; false if it is not understood.
  bool (*parse)(std::string_view operand, UsdtOperand& out) = nullptr;
  // The operand with a number instead of its symbol and displacement.
  std::string (*with_displacement)(std::string_view operand, int64_t displacement) = nullptr;
  // Offset in struct pt_regs of a register, or of a part of one, by its assembler name.
  std::optional<uint32_t> (*register_offset)(const Arch& arch, std::string_view name) = nullptr;
};

// ---- What depends on the CPU, as data and a few functions. A CPU is a folder here; arch.cc lists them. Code elsewhere
// asks by meaning (`arch.stack_pointer_offset`, `arch.has_ordered_stores`) and names no register of any CPU.
//
// Registers are given as byte offsets in the kernel's struct pt_regs (asm/ptrace.h), unless a comment says that they
// are DWARF register numbers.

struct Register {
  std::string_view name;  // as reg("name") takes it
  uint32_t offset_bytes;  // in struct pt_regs
  uint32_t size_bytes = 8;
};

// A register of which the bits in `mask` have the value.
struct RegisterValue {
  uint32_t offset_bytes = 0;
  int64_t value = 0;
  int64_t mask = -1;
};

// A flag that the kernel has in a task_struct.
struct TaskFlag {
  std::span<const std::string_view> members;  // to follow to the word, of 4 bytes
  int64_t mask = 0;
};

// Instructions that do nothing, and that kernels treat in different ways if a user probe is on them.
struct ProbedNop {
  bool (*matches)(std::span<const uint8_t> code) = nullptr;  // whether `code` begins with one
  // A function `long f(long)` in machine code, which keeps its argument below the stack pointer, where functions that
  // call no other may have variables, while it runs such a nop. It returns the argument.
  std::span<const uint8_t> example;
  uint32_t example_offset = 0;  // of the nop
};

struct Syscall {
  uint32_t number;
  std::string_view name;        // in the system call table
  std::string_view tracepoint;  // name of its tracepoints; name of the function in the kernel
};

// Constants whose names begin with `prefix`. `names` has them without it, separated by blanks: "NAME=VALUE", or "NAME"
// for one more than the constant before.
struct ConstantGroup {
  std::string_view prefix;
  std::string_view names;
};

// How .eh_frame describes the frames of this CPU. Register numbers are DWARF's.
struct UnwindConvention {
  uint32_t stack_pointer = 0;
  uint32_t frame_pointer = 0;
  uint32_t return_address = 0;         // the column of the return address, or the link register
  std::string_view plt_cfa = {};       // the CFA expression that linkers write for .plt; empty if none
  uint32_t plt_entry_bytes = 0;        // of .plt, a power of two
  uint32_t plt_pushed_from_bytes = 0;  // offset in an entry from which the CFA is 8 bytes further up
  // What a signal handler's frame holds of the interrupted code: offsets from the stack pointer in the trampoline.
  struct SignalFrame {
    int64_t frame_pointer_bytes = 0;
    int64_t stack_pointer_bytes = 0;
    int64_t instruction_pointer_bytes = 0;
    int64_t link_register_bytes = 0;  // only if calls use a link register
  };
  SignalFrame signal_frame = {};
};

// The register-based calling convention of the Go compiler (cmd/compile/abi-internal).
struct GoAbi {
  std::span<const uint32_t> argument_offsets = {};  // of integer arguments and results; empty if unknown
  uint32_t vector_register_count = 0;
  uint32_t stack_argument_start_bytes = 0;  // from the stack pointer at function entry to the first stack argument
  std::optional<Register> goroutine = {};   // the address of the running goroutine's runtime.g
  // Offset after the stack check at the start of a function's code; 0 if it has none.
  uint64_t (*find_stack_check_end)(std::span<const uint8_t> code) = nullptr;
  // Whether the bytes are one instruction that returns from a function.
  bool (*is_return)(std::span<const uint8_t> instruction) = nullptr;
};

struct Arch {
  std::string_view name;               // as uname(2) has it: "x86_64"
  std::string_view package_name;       // as packages and containers have it: "amd64"
  uint16_t elf_machine = 0;            // EM_*, in ELF files for it
  std::string_view source_directory;   // below arch/ in the kernel's source
  std::string_view library_directory;  // below /lib and /usr/lib on multiarch systems (Debian's tuple)
  int32_t library_cache_abi = 0;       // mark of this CPU's libraries in ld.so.cache (glibc, elf/ldconfig.h)

  // ---- Memory
  uint32_t page_size_bytes = 0;     // of most kernels for this CPU; Kernel::page_size_bytes() is a kernel's own
  bool has_ordered_stores = false;  // other CPUs see a CPU's stores in program order

  // ---- Registers
  std::span<const Register> registers;  // by every accepted name
  uint32_t pt_regs_size_bytes = 0;
  uint32_t stack_pointer_offset = 0;
  uint32_t frame_pointer_offset = 0;
  uint32_t instruction_pointer_offset = 0;
  std::optional<RegisterValue> user_mode = {};       // what a register holds in user mode; nullopt if none shows it
  std::span<const std::string_view> thread_pointer;  // members to follow from task_struct to the user's thread pointer

  // ---- System calls
  std::span<const Syscall> syscalls;   // ascending by number
  uint32_t syscall_number_offset = 0;  // at the exit of a call as well
  uint8_t syscall_number_bytes = 8;
  std::span<const uint32_t> syscall_argument_offsets;
  std::optional<RegisterValue> compat_task;  // what a register holds while 32-bit code runs
  // Set while the kernel handles a 32-bit call, whose number means another one; 64-bit code can make such calls, too.
  // nullopt: it cannot, and `compat_task` shows it.
  std::optional<TaskFlag> compat_call = {};
  std::span<const ConstantGroup> abi_constants = {};  // constants that other CPUs lack, or have with other values

  // ---- Function calls
  std::span<const uint32_t> argument_offsets;  // of integer arguments
  uint32_t return_value_offset = 0;
  uint32_t second_return_value_offset = 0;  // of values that take two registers
  uint32_t stack_argument_start_bytes = 0;  // from the stack pointer at function entry to the first stack argument
  uint32_t return_address_bytes = 0;        // that a call pushes on the stack; 0 if it uses the link register
  uint32_t link_register_offset = 0;        // of the return address at function entry, if nothing is pushed
  uint64_t code_address_mask = UINT64_MAX;  // the bits of a saved return address that are not its signature
  std::span<const uint32_t> dwarf_offsets;  // of the registers by DWARF number
  std::span<const uint64_t> callee_saved;   // DWARF numbers of registers that a function preserves
  ArgumentLocations argument_locations = nullptr;
  ResultLocation result_location = nullptr;
  // Offset from the thread pointer to the thread-local variables of an executable. Its PT_TLS segment has this size and
  // alignment in bytes (ELF Handling for Thread-Local Storage, 3: variants I and II).
  int64_t (*thread_local_start)(uint64_t size_bytes, uint64_t align_bytes) = nullptr;

  // ---- Stacks
  UnwindConvention unwind = {};
  std::string_view signal_trampoline;  // symbol of the code that a signal handler returns to
  // Kernel frames between a tracepoint and bpf_trace_runN(), which runs programs. 1 if __bpf_trace_NAME() has a frame:
  // kernels that need frame pointers are compiled with -fno-optimize-sibling-calls, so it does not end in a jump.
  uint32_t tracepoint_frames = 0;

  // ---- Code
  uint32_t max_instruction_bytes = 0;
  std::optional<ProbedNop> callable_nop = {};  // kernels may replace it by a call, see Feature::kUprobeKeepsStack
  std::optional<ProbedNop> prefixed_nop = {};  // can_be_stepped() is false, but see Feature::kUprobePrefixedNop
  // Whether the kernel's uprobes can handle the instruction at the start of `code`, as far as its first bytes show.
  // `before` is the code in front of it, up to `step_context_bytes`.
  bool (*can_be_stepped)(std::span<const std::byte> before, std::span<const std::byte> code) = nullptr;
  uint32_t step_context_bytes = 0;
  // Length of the instruction at the start of `code`; 0 if it is none or is cut off.
  uint32_t (*instruction_length)(std::span<const uint8_t> code) = nullptr;

  UsdtSyntax usdt = {};
  GoAbi go = {};
};

// By `name` or `package_name`. Null if the CPU is unknown.
const Arch* find_arch(std::string_view name);
const Arch* find_arch(uint16_t elf_machine);

// The CPU that this program is compiled for. About a traced kernel ask Kernel::arch().
const Arch& host_arch();

// The shortest name of the register at an offset; "r@OFFSET" if it has none.
std::string register_name(const Arch& arch, uint32_t offset_bytes);

std::optional<Register> find_register(const Arch& arch, std::string_view name);

// ---- The CPUs that this folder describes.

std::span<const Arch* const> all_arches();

// ---- Where instructions lead, for readers of the code of functions. Arch knows whether an instruction returns.

struct Flow {
  enum class Kind : uint8_t {
    kNext,     // to the next instruction, to a call that comes back to it, or to a case of a `switch`; or it returns
    kJump,     // `distance` away, or, of a condition, to the next one
    kUnknown,  // to an address in a register or in memory, of another function or within this one
  } kind = Kind::kNext;
  int64_t distance = 0;  // from the start of the instruction, bytes
};

// Whether a function stores its return address outside of the stack, as setjmp(3) does, before it moves the stack
// pointer, calls or jumps away. `code`: from its first instruction. False except for x86-64.
bool saves_return_address(const Arch& arch, std::span<const uint8_t> code);

// Whether it is a string instruction of x86-64 with a repeat prefix: each iteration fires a probe on it. `code`: from
// its first byte.
bool is_repeated(const Arch& arch, std::span<const uint8_t> code);

// `before`: the instruction in front, or empty. Both have their whole length, Arch::instruction_length. kUnknown for an
// unknown CPU.
Flow flow_of(const Arch& arch, std::span<const uint8_t> before, std::span<const uint8_t> instruction);

// ---- Instructions that the kernel's uprobes emulate. They execute others out of their place, by a single step, which
// takes a second exception: on virtual machines tens of microseconds.

// As far as the first bytes show.
bool is_emulated(const Arch& arch, std::span<const std::byte> code);

}  // namespace espy::kernel
