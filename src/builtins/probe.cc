// The probe that fired and its registers (probe, func, probetype, ctx, reg(), usermode), and actions on the traced
// process: signals, return values, memory. `args`, `argN` and `retval` are not builtins but fields of the probe's
// context.
#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/strings.h"
#include "builtins/builtin_support.h"
#include "program/program.h"
#include "runtime/handler_context.h"

namespace espy::builtins {

namespace {

using check::Checker;
using ir::Helper;
using ir::Op;
using lower::Lowering;
using lower::Operand;
using spec::BuiltinKind;
using spec::CallSite;
using types::Kind;
using types::TypeId;

template <Kind kKind>
Operand lower_probe_text(Lowering& lowering, uint32_t capacity_bytes) {
  const std::vector<program::ProbeId>& probes = lowering.unit().probes;
  std::vector<std::string> names(std::ranges::max(probes, {}, &program::ProbeId::index).index + 1);
  for (const program::ProbeId id : probes)
    names[id.index] = program::probe_name_text(kKind, lowering.program().probes[id]);
  return name_in_table(lowering, lowering.probe_index(), names, "", capacity_bytes);
}

// `func` combined with values of ksym(): the address of the function. bpf_get_func_ip() does not give it for a probe
// inside a function; the address of the probe, which has the same name, is used there. Kernels without that helper have
// a program for each function.
Operand lower_kernel_function(Lowering& lowering) {
  const TypeId type = lowering.types().simple(Kind::kKernelSymbol);
  const std::vector<program::ProbeId>& probes = lowering.unit().probes;
  const auto is_inside = [&](program::ProbeId id) { return lowering.program().probes[id].offset != 0; };
  if (std::ranges::any_of(probes, is_inside))
    return {type, lowering.register_value({"", lowering.kernel().arch().instruction_pointer_offset})};
  if (probes.size() == 1 && !lowering.kernel().has(kernel::Feature::kGetFuncIp))
    if (const auto address = lowering.kernel().symbol_address(lowering.program().probes[probes[0]].function))
      return {type, lowering.ir().constant(static_cast<int64_t>(*address))};
  return {type, lowering.ir().call(Helper::get_func_ip, {lowering.ir().context()})};
}

// `func` combined with values of usym(): the probe, whose function is known without the mappings of the process.
Operand lower_user_function(Lowering& lowering, ir::ValueId index) {
  ir::Builder& ir = lowering.ir();
  const Operand out{lowering.types().simple(Kind::kUserSymbol), lowering.memory(16, "func"), true};
  ir.store(8, out.value, index);
  ir.store(8, out.value, ir.constant(int64_t{1} << 32), 8);
  return out;
}

// Emits the index of the probe that fired, with a type that prints it as a name. If several probes of the program have
// the same name, a table maps them to the first one's index.
template <Kind kKind>
Operand lower_named_id(Lowering& lowering) {
  const TypeId type = lowering.types().simple(kKind);
  const auto id_of = [&](program::ProbeId id) { return lowering.fired_index(kKind, id); };
  const std::vector<program::ProbeId>& probes = lowering.unit().probes;
  if (probes.size() == 1) return lowering.scalar_operand(type, lowering.ir().constant(id_of(probes[0])));
  if (std::ranges::all_of(probes, [&](program::ProbeId id) { return id_of(id) == id.index; }))
    return lowering.scalar_operand(type, lowering.probe_index());
  std::vector<uint32_t> table(std::ranges::max(probes, {}, &program::ProbeId::index).index + 1);
  for (const program::ProbeId id : probes) table[id.index] = id_of(id);
  const auto last = static_cast<uint32_t>(table.size() - 1);
  const ir::ValueId row = lowering.ir().binary(Op::k_shl, bounded(lowering, lowering.probe_index(), last), 2);
  const std::string_view bytes(reinterpret_cast<const char*>(table.data()), table.size() * sizeof(uint32_t));
  const ir::ValueId address = lowering.ir().binary(Op::k_add, lowering.constant_bytes(bytes), row);
  return lowering.scalar_operand(type, lowering.ir().load(4, address));
}

template <Kind kKind>
Operand lower_probe_id(Lowering& lowering, const CallSite& call) {
  const types::Type wanted = lowering.types()[lowering.type(call.expr)];
  switch (wanted.kind) {
    case Kind::kString: return lower_probe_text<kKind>(lowering, wanted.count);
    case Kind::kKernelSymbol: return lower_kernel_function(lowering);
    case Kind::kUserSymbol: return lower_user_function(lowering, lower_named_id<kKind>(lowering).value);
    default: return lower_named_id<kKind>(lowering);
  }
}

// A constant if all probes of the action are of one type, which is the common case. The type of espy's own events is
// `special`.
TypeId check_probe_type(Checker& checker, const CallSite& call) {
  auto probes = checker.probe_types();
  const auto is_own = [](const std::string& type) { return type == "begin" || type == "end" || type == "self"; };
  if (!probes.empty() && std::ranges::all_of(probes, is_own)) probes = {"special"};
  if (probes.size() != 1) return checker.types().simple(Kind::kProbeType);
  checker.fold(call.expr, probes[0]);
  return checker.types().string(static_cast<uint32_t>(probes[0].size() + 1));
}

TypeId check_context(Checker& checker, const CallSite& call) {
  const spec::ProbeContext& context = checker.unit().context;
  // Looked up here, as BTF has to be searched for it.
  const TypeId layout =
      context.context_struct.empty() ? TypeId() : checker.kernel().find_struct(checker.types(), context.context_struct);
  if (layout.valid()) return checker.types().pointer(layout, context.context_space);
  const std::string provider = checker.first_probe().provider;
  const std::string probes = provider.empty() ? "this" : "`" + provider + "`";
  checker.error("no-context", call.span, probes + " probes have no `ctx`");
  return {};
}

Operand lower_context(Lowering& lowering, const CallSite& call) {
  return lowering.scalar_operand(lowering.type(call.expr), lowering.ir().context());
}

// ---- Registers

bool has_registers(Checker& checker, const CallSite& call) {
  if (checker.unit().context.registers_offset_bytes) return true;
  checker.error("no-registers", call.span, "`" + checker.first_probe().provider + "` probes have no registers");
  return false;
}

TypeId check_register(Checker& checker, const CallSite& call) {
  const TypeId result = checker.types().uint64();
  const auto name = checker.text(call.arguments[0]);
  if (!name || !has_registers(checker, call)) return result;
  const kernel::Arch& arch = checker.kernel().arch();
  if (kernel::find_register(arch, *name)) return result;
  std::vector<std::string> names;
  for (const kernel::Register& known : arch.registers) names.emplace_back(known.name);
  checker.error("unknown-register", checker.ast()[call.arguments[0]].span,
                "no register is named `" + *name + "` on " + std::string(arch.name), suggestion(*name, names));
  return result;
}

Operand lower_register(Lowering& lowering, const CallSite& call) {
  const auto found = kernel::find_register(lowering.kernel().arch(), *lowering.text(call.arguments[0]));
  return lowering.scalar_operand(lowering.types().uint64(), lowering.register_value(*found));
}

TypeId check_usermode(Checker& checker, const CallSite& call) {
  if (checker.unit().context.registers_offset_bytes && !checker.kernel().arch().user_mode)
    checker.error(
        "wrong-cpu", call.span,
        "no register of " + std::string(checker.kernel().arch().name) + " shows whether the CPU is in user mode");
  return checker.types().int_type(1, false);
}

// A probe without registers fires in the kernel, except those of espy itself.
Operand lower_usermode(Lowering& lowering, const CallSite&) {
  ir::Builder& ir = lowering.ir();
  const TypeId type = lowering.types().int_type(1, false);
  const spec::ProbeContext& context = lowering.unit().context;
  if (!context.registers_offset_bytes) {
    const bool is_own = context.after_exit == spec::AfterExit::kAlways;
    return lowering.scalar_operand(type, ir.constant(is_own ? 1 : 0));
  }
  const kernel::Arch& arch = lowering.kernel().arch();
  const ir::ValueId state = lowering.register_value({"", arch.user_mode->offset_bytes});
  const ir::ValueId level = ir.binary(Op::k_and, state, arch.user_mode->mask);
  return lowering.scalar_operand(type, ir.binary(Op::k_eq, level, arch.user_mode->value));
}

// ---- Signals

std::optional<int> signal_number(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int number = 1; number < NSIG; ++number)
    if (const char* known = ::sigabbrev_np(number); known && name == known) return number;
  return std::nullopt;
}

TypeId check_signal(Checker& checker, const CallSite& call) {
  const TypeId nothing = checker.types().void_type();
  const syntax::ExprId what = call.arguments[0];
  const source::Span span = checker.ast()[what].span;
  const types::Type& type = checker.types()[checker.type(what)];
  if (const auto name = checker.text(what)) {
    if (signal_number(*name)) return nothing;
    std::vector<std::string> names;
    for (int number = 1; number < NSIG; ++number)
      if (const char* known = ::sigabbrev_np(number)) names.push_back(std::string("SIG") + known);
    checker.error("unknown-signal", span, "no signal is named `" + *name + "`", suggestion(*name, names));
  } else if (const auto number = checker.integer(what); number && (*number < 1 || *number > 64)) {
    checker.error("unknown-signal", span, "a signal number must be from 1 to 64");
  } else if (!number && !types::is_integer(type)) {
    checker.error("wrong-argument", span, "a signal must be a name such as \"SIGUSR1\", or a number");
  }
  return nothing;
}

template <Helper kHelper>
Operand lower_signal(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const auto name = lowering.text(call.arguments[0]);
  const ir::ValueId number = name ? ir.constant(signal_number(*name).value_or(0)) : lowering.scalar(call.arguments[0]);
  lowering.report_failure(kHelper, ir.call(kHelper, {number}));
  return {};
}

// ---- Changing the return value of a function, and the memory of a process

TypeId check_override(Checker& checker, const CallSite& call) {
  if (!checker.kernel().symbol_address("bpf_override_return"))
    checker.error("missing-feature", call.span, "this kernel cannot override return values",
                  "it must be built with CONFIG_BPF_KPROBE_OVERRIDE");
  return checker.types().void_type();
}

Operand lower_override(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  ir.call(Helper::override_return, {ir.context(), lowering.scalar(call.arguments[0])});
  return {};
}

TypeId check_write_user(Checker& checker, const CallSite& call) {
  const auto length = checker.integer(call.arguments[2]);
  const types::Type& source = checker.types()[checker.type(call.arguments[1])];
  uint32_t limit =
      types::is_by_reference(source) ? source.size_bytes : static_cast<uint32_t>(checker.config().limits.max_strlen);
  if (source.kind == Kind::kBuffer) limit = source.count;  // without its header
  if (length && (*length < 1 || *length > limit))
    checker.error("write-length", checker.ast()[call.arguments[2]].span,
                  "the length must be from 1 to " + std::to_string(limit));
  return checker.types().bool_type();
}

// The helper reads its source from BPF memory only, so the bytes are copied there first.
Operand lower_write_user(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const auto size = static_cast<uint32_t>(lowering.integer(call.arguments[2]).value_or(1));
  const ir::ValueId destination = lowering.scalar(call.arguments[0]);
  const MemoryRef source = referenced_memory(lowering, call.arguments[1]);
  const ir::ValueId bytes = lowering.memory(size, "written");
  lowering.read(bytes, size, source.address, source.space);
  const ir::ValueId error = ir.call(Helper::probe_write_user, {destination, bytes, ir.constant(size)});
  lowering.report_failure(Helper::probe_write_user, error);
  return lowering.scalar_operand(lowering.types().bool_type(), ir.binary(Op::k_eq, error, ir.constant(0)));
}

Operand lower_unwatch(Lowering& lowering, const CallSite& call) {
  const Operand address{lowering.types().int64(), lowering.scalar(call.arguments[0])};
  lowering.emit_event("unwatch", {{{}, address}}, call.span);
  return {};
}

void handle_unwatch(runtime::EventRecord& event) {
  event.context().detach_watchpoints(static_cast<uint64_t>(event.integer(0)));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "probe_name probe",
     .doc = "The full name of the probe that fired.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_probe_id<Kind::kProbeName>,
     .example = "begin { print(probe); }"},
    {.sig = "function_name func",
     .doc = "The name of the probed function.",
     .kind = BuiltinKind::kVariable,
     .lower = lower_probe_id<Kind::kFunctionName>,
     .example = "uprobe:/bin/bash:readline { print(func); }"},
    {.sig = "any probetype",
     .doc = "The type of the probe that fired: `tracepoint`, `kprobe`.",
     .kind = BuiltinKind::kVariable,
     .check = check_probe_type,
     .lower = lower_probe_id<Kind::kProbeType>,
     .example = "begin { print(probetype); }"},
    {.sig = "any ctx",
     .doc = "The raw context of the probe, with its type if BTF describes it.",
     .kind = BuiltinKind::kVariable,
     .check = check_context,
     .lower = lower_context,
     .reads_context = true,
     .kept = spec::Kept::kYes},
    {.sig = "any reg(literal string name)",
     .doc = "The value that a CPU register had when the probe fired: `reg(\"ip\")`.",
     .check = check_register,
     .lower = lower_register,
     .reads_context = true,
     .kept = spec::Kept::kYes,
     .example = "profile:hz:99 { @[reg(\"ip\")] = count(); exit(); }"},
    {.sig = "any usermode",
     .doc = "1 if the CPU was in user mode, 0 if it was in the kernel. 1 in `begin` and `end`.",
     .kind = BuiltinKind::kVariable,
     .check = check_usermode,
     .lower = lower_usermode,
     .kept = spec::Kept::kYes,
     .example = "profile:hz:99 { @[usermode] = count(); exit(); }"},
    {.sig = "void signal(any signal)",
     .doc = "Sends a signal, given by name or number, to the current process. Needs `--unsafe`.",
     .check = check_signal,
     .lower = lower_signal<Helper::send_signal>,
     .needs = kernel::Feature::kSendSignal,
     .is_unsafe = true,
     .example = "uprobe:/bin/bash:readline { signal(\"SIGUSR1\"); }"},
    {.sig = "void signal_thread(any signal)",
     .doc = "Sends a signal to the current thread. Needs `--unsafe`.",
     .check = check_signal,
     .lower = lower_signal<Helper::send_signal_thread>,
     .needs = kernel::Feature::kSendSignal,
     .is_unsafe = true,
     .example = "uprobe:/bin/bash:readline { signal_thread(10); }"},
    {.sig = "void override(int value)",
     .doc = "Makes the probed function return `value` without running its body. Works for functions that the kernel "
            "allows for error injection. Needs `--unsafe`.",
     .check = check_override,
     .lower = lower_override,
     .needs = kernel::Feature::kKprobe,
     .is_unsafe = true,
     .providers = "kprobe"},
    {.sig = "bool write_user(pointer destination, any source, literal int length)",
     .doc = "Writes `length` bytes from `source` to the memory of the current process. Gives true if the kernel has "
            "written them. Needs `--unsafe`.",
     .check = check_write_user,
     .lower = lower_write_user,
     .needs = kernel::Feature::kProbeWriteUser,
     .is_unsafe = true,
     .capability = "CAP_SYS_ADMIN"},
    {.sig = "void unwatch(int address)",
     .doc = "Removes the watchpoints of an address. Takes effect when the record is read, so they may still fire until "
            "then.",
     .lower = lower_unwatch,
     .handle = handle_unwatch,
     .example = "watchpoint:0x10000000:8:w { unwatch(0x10000000); }"},
};

}  // namespace

extern const spec::BuiltinFamily kProbe = {.title = "The probe", .rows = kRows};

}  // namespace espy::builtins
