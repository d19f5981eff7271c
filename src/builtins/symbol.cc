// Conversion between addresses and names, and control groups. In BPF these values are numbers; user space finds the
// names when it prints them.
#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/byte_reader.h"
#include "base/files.h"
#include "base/strings.h"
#include "base/untrusted_file.h"
#include "builtins/builtin_support.h"
#include "symbols/symbols.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using spec::CallSite;
using types::Kind;
using types::TypeId;

// ---- ksym, usym

Operand lower_ksym(Lowering& lowering, const CallSite& call) {
  return lowering.scalar_operand(lowering.types().simple(Kind::kKernelSymbol), lowering.scalar(call.arguments[0]));
}

Operand lower_usym(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ValueId address = lowering.scalar(call.arguments[0]);
  const ValueId pid = process_in_proc(lowering);
  remember_process(lowering, pid, call.span);
  Operand out{lowering.types().simple(Kind::kUserSymbol), lowering.memory(16, "usym"), true};
  ir.store(8, out.value, address);
  ir.store(8, out.value, pid, 8);
  return out;
}

// ---- kaddr, uaddr: at compile time ----------------------------------------------------------------------------------

TypeId check_kaddr(Checker& checker, const CallSite& call) {
  const auto name = checker.text(call.arguments[0]);
  if (name) {
    const auto address = checker.kernel().symbol_address(*name);
    if (address) {
      checker.fold(call.expr, static_cast<int64_t>(*address));
    } else {
      checker.error(
          "unknown-symbol", checker.ast()[call.arguments[0]].span, "the kernel shows no symbol `" + *name + "`",
          "/proc/kallsyms lists functions, and variables only with CONFIG_KALLSYMS_ALL; without CAP_SYSLOG it "
          "shows no addresses");
    }
  }
  return checker.types().uint64();
}

// ---- percpu_kaddr: the symbol's address plus the offset of the CPU's region, from the kernel's __per_cpu_offset

constexpr const char* kRegionOffsets = "__per_cpu_offset";

TypeId check_percpu_kaddr(Checker& checker, const CallSite& call) {
  const auto name = checker.text(call.arguments[0]);
  for (const std::string& symbol : {name.value_or(kRegionOffsets), std::string(kRegionOffsets)}) {
    if (checker.kernel().symbol_address(symbol)) continue;
    checker.error("unknown-symbol", checker.ast()[call.arguments[0]].span,
                  "the kernel shows no symbol `" + symbol + "`",
                  "/proc/kallsyms lists variables only with CONFIG_KALLSYMS_ALL");
    break;
  }
  return checker.types().uint64();
}

Operand lower_percpu_kaddr(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  kernel::Kernel& kernel = lowering.kernel();
  const auto base = static_cast<int64_t>(kernel.symbol_address(*lowering.text(call.arguments[0])).value_or(0));
  const auto offsets = static_cast<int64_t>(kernel.symbol_address(kRegionOffsets).value_or(0));
  const ValueId cpu = call.arguments.size() > 1 ? lowering.scalar(call.arguments[1]) : lowering.cpu();
  const auto address = [&] {
    const ValueId entry = ir.binary(Op::k_add, ir.binary(Op::k_shl, cpu, 3), offsets);
    const ValueId region = lowering.read_scalar(entry, 0, 8, false, types::AddressSpace::kKernel);
    return ir.binary(Op::k_add, region, base);
  };
  const ValueId found = lowering.select(ir::Condition::ult, cpu, ir.constant(kernel.cpu_count()), address,
                                        [&] { return ir.constant(0); });
  return lowering.scalar_operand(lowering.types().uint64(), found);
}

// ---- uaddr: a symbol of the probed binary
//
// A position-independent binary is loaded at another address in each process. If -p or -c names the process, its
// mappings give the load address. Otherwise, a probe at a known instruction does: the difference of the instruction
// pointer and the linked address of that instruction is the load bias. A return probe fires at a return address in the
// caller, which is not known; but if the binary is an executable, not a library, the kernel has the start of its code
// in mm->start_code.

std::optional<symbols::ElfSymbol> find_symbol(const symbols::ElfFile& file, const std::string& name) {
  const auto object = file.find_object(name);
  return object ? object : file.find_function(name);
}

// Returns the lowest linked address of executable code in an executable; nullopt for a library, which has no
// interpreter.
std::optional<uint64_t> code_address(const std::string& path) {
  const auto file = open_untrusted(path, UINT64_MAX);
  if (!file) return std::nullopt;
  const auto header = load_struct<Elf64_Ehdr>(file->read_at(0, sizeof(Elf64_Ehdr)).value_or(""), 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return std::nullopt;
  const std::string segments =
      file->read_at(header->e_phoff, uint64_t{header->e_phnum} * sizeof(Elf64_Phdr)).value_or("");
  std::optional<uint64_t> lowest;
  bool is_program = false;
  for (size_t i = 0; i < header->e_phnum; ++i) {
    const auto segment = load_struct<Elf64_Phdr>(segments, i * sizeof(Elf64_Phdr));
    if (!segment) return std::nullopt;
    is_program |= segment->p_type == PT_INTERP;
    if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0)
      lowest = std::min(lowest.value_or(UINT64_MAX), segment->p_vaddr);
  }
  return is_program ? lowest : std::nullopt;
}

bool has_known_instruction(const spec::ProbeContext& context) {
  return context.registers_offset_bytes && context.boundary != spec::CallBoundary::kReturn;
}

TypeId check_uaddr(Checker& checker, const CallSite& call) {
  types::Types& types = checker.types();
  const auto pointer_to = [&](TypeId target) { return types.pointer(target, types::AddressSpace::kUser); };
  const auto name = checker.text(call.arguments[0]);
  const program::Probe& probe = checker.first_probe();
  const source::Span span = checker.ast()[call.arguments[0]].span;
  symbols::Symbolizer* symbols = checker.symbols();
  if (!name || !symbols) return pointer_to(types.uint64());
  const auto file = symbols->elf_file(probe.target);
  if (!file) {
    checker.error("no-binary", span, "`uaddr` needs a probe of a binary", file.error().message);
    return pointer_to(types.uint64());
  }
  const auto symbol = find_symbol(**file, *name);
  if (!symbol) {
    checker.error("unknown-symbol", span, "`" + probe.target + "` has no symbol `" + *name + "`");
    return pointer_to(types.uint64());
  }
  const bool is_small = symbol->size == 1 || symbol->size == 2 || symbol->size == 4;
  const TypeId target = types.int_type(is_small ? static_cast<uint32_t>(symbol->size) : 8, false);
  const spec::Config& config = checker.config();
  const std::vector<spec::TracedProcess>& processes = config.tracee.processes;
  uint32_t pid = 0;  // of the only process
  if (processes.size() == 1) pid = processes.front().pid;
  if (processes.empty() && config.tracee.has_child) pid = config.tracee.child_pid;
  std::optional<uint64_t> bias;
  if (!(*file)->is_position_independent())
    bias = 0;
  else if (pid != 0)
    bias = symbols->load_bias(pid, probe.target);
  if (bias) {
    checker.fold(call.expr, static_cast<int64_t>(symbol->address + *bias));
  } else if (!has_known_instruction(checker.unit().context) && !code_address(probe.target)) {
    checker.error("no-process", call.span, "`" + probe.target + "` is loaded at another address in each process",
                  "name one process with -p, or use a uprobe");
  }
  return pointer_to(target);
}

Operand lower_uaddr(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const TypeId type = lowering.type(call.expr);
  const check::Checked& checked = lowering.checked();
  const program::Probe& first = checked.probes[lowering.unit().probes[0]];
  const auto file = probed_file(lowering);
  const auto symbol = file ? find_symbol(*file, *lowering.text(call.arguments[0])) : std::nullopt;
  if (!symbol) return {type, ir.constant(0)};
  if (!has_known_instruction(lowering.unit().context)) {
    const ValueId start = lowering.current_task_field({"mm", "start_code"});
    const uint64_t linked = code_address(first.target).value_or(0);
    return {type, ir.binary(Op::k_add, start, static_cast<int64_t>(symbol->address - linked))};
  }
  // Per probe: the distance from the probed instruction to the symbol.
  std::string table;
  for (const program::Probe& probe : checked.probes) {
    const uint64_t linked = probe.target == first.target ? file->address_of_offset(probe.address).value_or(0) : 0;
    const uint64_t distance = symbol->address - linked;
    table.append(reinterpret_cast<const char*>(&distance), sizeof(distance));
  }
  const auto count = static_cast<uint32_t>(table.size() / sizeof(uint64_t));
  const ValueId row = bounded(lowering, lowering.probe_index(), count - 1);
  const ValueId entry = ir.binary(Op::k_add, lowering.constant_bytes(table), ir.binary(Op::k_shl, row, 3));
  const kernel::Arch& arch = lowering.kernel().arch();
  const ValueId here = lowering.register_value({"", arch.instruction_pointer_offset});
  return {type, ir.binary(Op::k_add, here, ir.load(8, entry))};
}

// ---- Control groups

// A control group's id is the inode number of its directory.
TypeId check_cgroupid(Checker& checker, const CallSite& call) {
  const auto path = checker.text(call.arguments[0]);
  struct stat found = {};
  if (path && ::stat(path->c_str(), &found) == 0) {
    checker.fold(call.expr, static_cast<int64_t>(found.st_ino));
  } else if (path) {
    checker.error("no-cgroup", checker.ast()[call.arguments[0]].span, "there is no control group `" + *path + "`",
                  "give the path of its directory below /sys/fs/cgroup");
  }
  return checker.types().uint64();
}

// There is one hierarchy in version 2, so a filter by name matches all control groups or none.
Operand lower_cgroup_path(Lowering& lowering, const CallSite& call) {
  const auto filter = call.arguments.size() > 1 ? lowering.text(call.arguments[1]) : std::nullopt;
  if (filter && !glob_match(*filter, "unified"))
    return lowering.scalar_operand(lowering.types().simple(Kind::kCgroupPath), lowering.ir().constant(-1));
  return lowering.scalar_operand(lowering.types().simple(Kind::kCgroupPath), lowering.scalar(call.arguments[0]));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "ksym ksym(int address)",
     .doc = "The name of the kernel function or variable at an address.",
     .lower = lower_ksym,
     .capability = "CAP_SYSLOG",
     .example = "begin { print(ksym(kaddr(\"vfs_read\"))); }"},
    {.sig = "usym usym(int address)",
     .doc = "The name of the function at an address of the current process.",
     .lower = lower_usym,
     .capability = "CAP_SYS_PTRACE",
     .example = "uprobe:/bin/bash:readline { print(usym(reg(\"ip\"))); }"},
    {.sig = "uint64 kaddr(literal string name)",
     .doc = "The address of a kernel symbol.",
     .check = check_kaddr,
     .kept = spec::Kept::kYes,
     .capability = "CAP_SYSLOG",
     .example = "begin { printf(\"%p\\n\", kaddr(\"vfs_read\")); }"},
    {.sig = "any percpu_kaddr(literal string name, int cpu = cpu)",
     .doc = "The address of a per-CPU variable of the kernel, for the current CPU or `cpu`.",
     .check = check_percpu_kaddr,
     .lower = lower_percpu_kaddr,
     .kept = spec::Kept::kYes,
     .capability = "CAP_SYSLOG"},
    {.sig = "any uaddr(literal string name)",
     .doc = "The address of a symbol of the probed binary, as a pointer to an integer of the symbol's size.",
     .check = check_uaddr,
     .lower = lower_uaddr,
     .reads_file = true,
     .kept = spec::Kept::kYes,
     .providers = "uprobe,uretprobe,usdt",
     .example = "uprobe:/bin/bash:readline { printf(\"PS1: %s\\n\", str(*uaddr(\"ps1_prompt\"))); }"},
    {.sig = "uint64 cgroupid(literal string path)",
     .doc = "The id of the control group with this directory, for comparison with `cgroup`.",
     .check = check_cgroupid,
     .example = "begin { if (cgroup == cgroupid(\"/sys/fs/cgroup\")) { print(\"root group\"); } }"},
    {.sig = "cgroup_path cgroup_path(int id, literal string filter = \"*\")",
     .doc = "The path of a control group: `unified:/user.slice`; empty if the name of its hierarchy does not match "
            "`filter`.",
     .lower = lower_cgroup_path,
     .example = "begin { print(cgroup_path(cgroup)); }"},
};

}  // namespace

extern const spec::BuiltinFamily kSymbol = {.title = "Symbols", .rows = kRows};

}  // namespace espy::builtins
