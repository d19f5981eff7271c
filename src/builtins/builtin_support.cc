#include "builtins/builtin_support.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "builtins/unwind_frame.h"
#include "lower/process_ids.h"
#include "output/format.h"
#include "runtime/process_watch.h"
#include "symbols/symbols.h"

namespace espy::builtins {

using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using types::AddressSpace;
using types::Kind;
using types::TypeId;

namespace {

constexpr int64_t kBufferHeaderBytes = 4;  // the length

}  // namespace

std::optional<uint32_t> own_bytes(const types::Type& type) {
  switch (type.kind) {
    case Kind::kBuffer: return type.count;
    case Kind::kString:
    case Kind::kArray:
    case Kind::kTuple:
    case Kind::kRecord: return type.size_bytes;
    case Kind::kStruct: return type.complete ? std::optional(type.size_bytes) : std::nullopt;
    default: return std::nullopt;
  }
}

ValueId bounded(Lowering& lowering, ValueId value, uint32_t limit) {
  ir::Builder& ir = lowering.ir();
  return lowering.select(
      Condition::ule, value, ir.constant(limit), [&] { return value; }, [&] { return ir.constant(limit); });
}

MemoryRef referenced_memory(Lowering& lowering, syntax::ExprId expr) {
  const Operand operand = lowering.value(expr);
  const types::Type& type = lowering.types()[operand.type];
  if (operand.is_address && type.kind == Kind::kBuffer)
    return {lowering.ir().binary(Op::k_add, operand.value, kBufferHeaderBytes), operand.space};
  if (operand.is_address) return {operand.value, operand.space};
  if (type.kind == Kind::kPointer) return {operand.value, type.space};
  return {operand.value, lowering.unit().context.pointers};
}

// Compares words, then the rest by halves. A computed address may be unaligned, and the verifier rejects unaligned
// loads from the stack, so such bytes are copied to an aligned buffer first.
ValueId bytes_differ(Lowering& lowering, ValueId a, ValueId b, uint32_t size_bytes) {
  ir::Builder& ir = lowering.ir();
  for (ValueId* address : {&a, &b}) {
    if (ir.function().values[*address].op != Op::k_add) continue;
    const ValueId copy = lowering.memory(size_bytes, "bytes");
    lowering.copy(copy, *address, size_bytes);
    *address = copy;
  }
  ValueId difference = ir.constant(0);
  for (uint32_t at = 0; at < size_bytes;) {
    uint32_t width = 8;
    while (width > size_bytes - at) width /= 2;
    const auto bytes = static_cast<uint8_t>(width);
    difference = ir.binary(Op::k_or, difference, ir.binary(Op::k_xor, ir.load(bytes, a, at), ir.load(bytes, b, at)));
    at += width;
  }
  return ir.binary(Op::k_ne, difference, 0);
}

ValueId as_string(Lowering& lowering, syntax::ExprId expr, uint32_t capacity_bytes) {
  const Operand operand = lowering.in_our_memory(lowering.value(expr));
  return lowering.convert(operand, lowering.types().string(capacity_bytes)).value;
}

Operand name_in_table(Lowering& lowering, ValueId index, const std::vector<std::string>& names,
                      std::string_view otherwise, uint32_t capacity_bytes) {
  ir::Builder& ir = lowering.ir();
  std::string table;
  const auto append = [&](std::string_view name) {
    table += name.substr(0, capacity_bytes - 1);
    table.resize((table.size() / capacity_bytes + 1) * capacity_bytes);
  };
  for (const std::string& name : names) append(name.empty() ? otherwise : std::string_view(name));
  append(otherwise);
  const ValueId row = bounded(lowering, index, static_cast<uint32_t>(names.size()));
  const ValueId address =
      ir.binary(Op::k_add, lowering.constant_bytes(table), ir.binary(Op::k_mul, row, capacity_bytes));
  return {lowering.types().string(capacity_bytes), address, true};
}

std::shared_ptr<const symbols::ElfFile> probed_file(Lowering& lowering) {
  const check::Checked& checked = lowering.checked();
  if (checked.symbols == nullptr) return nullptr;
  return checked.symbols->elf_file(checked.probes[lowering.unit().probes[0]].target).value_or(nullptr);
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string near = nearest(word, candidates);
  return near.empty() ? "expected one of " + join(names, ", ") : "did you mean `" + near + "`?";
}

Operand kernel_member(Lowering& lowering, ValueId base, TypeId struct_type,
                      std::initializer_list<std::string_view> path) {
  types::Types& types = lowering.types();
  ir::Builder& ir = lowering.ir();
  TypeId outer = struct_type, type = struct_type;
  int64_t offset_bytes = 0;
  for (const std::string_view name : path) {
    if (types[type].kind == Kind::kPointer) {
      base = lowering.read_scalar(base, offset_bytes, 8, false, AddressSpace::kKernel, outer);
      offset_bytes = 0;
      type = outer = types[type].element;
    }
    lowering.kernel().complete(types, type);
    const auto found = types::find_member(types, type, name);
    if (!found) return {types.int64(), ir.constant(0)};
    offset_bytes += found->offset_bits / 8;
    type = found->type;
  }
  const types::Type last = types[type];
  if (types::is_by_reference(last))
    return {type, ir.binary(Op::k_add, base, offset_bytes), true, AddressSpace::kKernel};
  return {type, lowering.read_scalar(base, offset_bytes, static_cast<uint8_t>(last.size_bytes), last.is_signed,
                                     AddressSpace::kKernel, outer)};
}

std::string no_room_for_stacks(Lowering& lowering) {
  return "stack(s) lost: there are too many different stacks (raise max_stacks = " +
         std::to_string(lowering.config().limits.max_stacks) + ")";
}

namespace {

// Programs with a pt_regs context start the stack at those registers. A raw tracepoint and a trampoline have none: the
// stack starts in the program itself. That of a tracepoint's record starts at the caller of perf's function.
int64_t frames_to_skip(Lowering& lowering) {
  using program::ProgramKind;
  constexpr int64_t kProgramFrames = 2;  // the raw tracepoint program and its caller, bpf_trace_runN
  const spec::ProbeContext& context = lowering.unit().context;
  int64_t frames = 0;
  switch (context.kind) {
    case ProgramKind::kRawTracepoint:
    case ProgramKind::kTracingRawTracepoint:
      frames = kProgramFrames + lowering.kernel().arch().tracepoint_frames;
      break;
    case ProgramKind::kTracepoint:
    case ProgramKind::kFentry:
    case ProgramKind::kFexit: break;
    default:
      if (!context.is_raised_by_kernel) return 0;
  }
  return frames + (lowering.kernel().has(kernel::Feature::kFirstFrameOnce) ? 0 : 1);
}

}  // namespace

ValueId stack_flags(Lowering& lowering, const types::Type& type) {
  constexpr int64_t kUserStackFlag = 256;  // BPF_F_USER_STACK
  // The low byte is the number of frames to skip.
  return lowering.ir().constant(type.kind == Kind::kUserStack ? kUserStackFlag : frames_to_skip(lowering));
}

bool is_without_stack(Lowering& lowering, const types::Type& type) {
  const spec::ProbeContext& context = lowering.unit().context;
  const bool can_keep = lowering.kernel().has(kernel::Feature::kHashAllocation);
  return context.kind == program::ProgramKind::kIter && (type.kind == Kind::kUserStack || !context.task || !can_keep);
}

// The task of an iterator may be NULL for the verifier, in the last call only.
ValueId get_stack(Lowering& lowering, const types::Type& type, ValueId destination, uint32_t size_bytes) {
  ir::Builder& ir = lowering.ir();
  const ValueId size = ir.constant(size_bytes);
  if (is_without_stack(lowering, type)) return ir.constant(-EFAULT);
  const auto& of_object = lowering.unit().context.task;
  if (!of_object) return ir.call(ir::Helper::get_stack, {ir.context(), destination, size, stack_flags(lowering, type)});
  const ValueId task = ir.load(8, ir.context(), of_object->offset_bytes);
  return lowering.select(
      Condition::ne, task, ir.constant(0),
      [&] {
        return ir.call(ir::Helper::get_task_stack, {task, destination, size, ir.constant(0)});
      },
      [&] { return ir.constant(-EFAULT); });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a reference would dangle when the type table grows
ValueId frame_count(Lowering& lowering, types::Type type) {
  constexpr uint32_t kFrameBytes = 8;
  ir::Builder& ir = lowering.ir();
  const uint32_t size = type.count * kFrameBytes;
  const ValueId size_or_error = get_stack(lowering, type, lowering.memory(size, "frames"), size);
  return lowering.select(
      Condition::slt, size_or_error, ir.constant(0), [&] { return ir.constant(0); },
      [&] { return ir.binary(Op::k_shr, size_or_error, 3); });
}

namespace {

// A floating-point member of a struct, or two numbers, whose quotient is printed.
bool is_real_number(const types::Types& types, TypeId id) {
  const types::Type& type = types[id];
  if (type.kind == Kind::kFloat) return true;
  const auto is_number = [&](const types::Member& member) {
    return types::is_integer(types[member.type]) || types[member.type].kind == Kind::kFloat;
  };
  return type.kind == Kind::kTuple && type.members.size() == 2 && std::ranges::all_of(type.members, is_number);
}

// Reports an error if an integer conversion gets a value that is not a number: also names that are kept as one.
void check_conversion(check::Checker& checker, const output::Conversion& conversion, syntax::ExprId argument) {
  const TypeId type = checker.type(argument);
  if (conversion.conversion == "s") checker.warn_of_address(argument, "`%s` prints");
  if (conversion.conversion == "f" && type && is_real_number(checker.types(), type)) return;
  if (!type || conversion.conversion.find_first_of("diuoxXcpf") != 0) return;
  switch (checker.types()[type].kind) {
    case Kind::kVoid:  // reported where it is used
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kEnum:
    case Kind::kPointer:
    case Kind::kCount:
    case Kind::kSum:
    case Kind::kMin:
    case Kind::kMax:
    case Kind::kAvg: return;
    default: break;
  }
  checker.error("format-type", checker.ast()[argument].span,
                "`%" + conversion.conversion + "` needs an integer" +
                    (conversion.conversion == "f" ? ", or two in a tuple" : "") + ", but this is `" +
                    types::to_string(checker.types(), type) + "`",
                "use `%s`, which prints any value");
}

constexpr const char* kConversions = "write %% for a percent sign; the conversions are d i u o x X c f p s r rx rh gr";

// "%q": a `%` that begins no conversion, with what follows if that can be shown.
std::string stray_text(std::string_view format, size_t at) {
  const bool has_next = at + 1 < format.size() && format[at + 1] > ' ' && format[at + 1] <= '~';
  return std::string(format.substr(at, has_next ? 2 : 1));
}

TypeId check_format_values(check::Checker& checker, const spec::CallSite& call, bool allows_extra) {
  const TypeId nothing = checker.types().void_type();
  const auto text = checker.text(call.arguments[0]);
  if (!text) return nothing;  // reported by the check of the signature
  const auto conversions = output::parse_format(*text);
  const source::Span span = checker.ast()[call.arguments[0]].span;
  if (!conversions) {
    checker.error("bad-format", span, conversions.error().message, conversions.error().hint);
    return nothing;
  }
  size_t expected = 0;
  for (const output::Conversion& conversion : *conversions) {
    expected += 1 + (conversion.width == -2 ? 1 : 0) + (conversion.precision == -2 ? 1 : 0);
    if (expected < call.arguments.size()) check_conversion(checker, conversion, call.arguments[expected]);
  }
  const size_t given = call.arguments.size() - 1;
  const bool differs = allows_extra ? given < expected : given != expected;
  // One message for one mistake: where a value is left over, it is probably the one of the unknown conversion.
  const std::vector<size_t> stray = output::stray_percents(*text);
  for (const size_t at : stray) {
    if (differs) break;
    checker.warning(
        "percent-sign", span,
        fmt::format("`{}` in the format is not a conversion and is printed as it is", stray_text(*text, at)),
        kConversions);
  }
  if (differs) {
    const std::string counts = fmt::format("the format needs {} {}, but {} {} given", expected,
                                           expected == 1 ? "value" : "values", given, given == 1 ? "is" : "are");
    if (stray.empty())
      checker.error("format-arguments", call.span, counts);
    else
      checker.error("format-arguments", call.span,
                    fmt::format("{}: `{}` is not a conversion", counts, stray_text(*text, stray.front())),
                    kConversions);
  }
  return nothing;
}

}  // namespace

TypeId check_format(check::Checker& checker, const spec::CallSite& call) {
  return check_format_values(checker, call, false);
}

TypeId check_format_with_extra(check::Checker& checker, const spec::CallSite& call) {
  return check_format_values(checker, call, true);
}

// ---- Mappings of short-lived processes ------------------------------------------------------------------------------
//
// A process may end, and its /proc/PID/maps with it, before its stack is printed. So the first time that a program uses
// an address of a process, it emits a record, and user space reads the mappings at once. The LRU hash of known
// processes costs 8 ns a stack; a process that it evicted is reported once more, which is harmless.

namespace {

constexpr uint32_t kSeenProcesses = 4 * 1024;

}  // namespace

ValueId process_in_proc(Lowering& lowering) {
  const auto& own = lowering.checked().config.tracee.pid_namespace;
  if (!own || !own->numbers_proc) return lower::current_process(lowering.ir());
  return lower::own_id(lowering.ir(), lowering.types(), lowering.kernel(), *own, true);
}

ValueId seen_map(Lowering& lowering, std::string_view name, uint32_t key_bytes, uint32_t max_entries) {
  program::Program& program = lowering.program();
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == name) return lowering.ir().map(id);
  return lowering.ir().map(program.maps.add({.name = std::string(name),
                                             .kind = program::MapKind::kLruHash,
                                             .key_size = key_bytes,
                                             .value_size = 8,
                                             .max_entries = max_entries,
                                             .is_preallocated = true}));
}

void notify_once(Lowering& lowering, ValueId map, ValueId key, const std::function<void()>& notify) {
  ir::Builder& ir = lowering.ir();
  lowering.when(Condition::eq, ir.call(ir::Helper::map_lookup_elem, {map, key}), ir.constant(0), [&] {
    const ValueId value = lowering.memory(8, "seen");
    ir.store(8, value, ir.constant(0));
    ir.call(ir::Helper::map_update_elem, {map, key, value, ir.constant(0)});
    notify();
  });
}

void remember_process(Lowering& lowering, ValueId pid, source::Span span) {
  ir::Builder& ir = lowering.ir();
  const ValueId key = lowering.memory(8, "seen_pid");
  ir.store(8, key, pid);
  notify_once(lowering, seen_map(lowering, "seen_processes", 4, kSeenProcesses), key, [&] {
    const Operand process = lowering.scalar_operand(lowering.types().int_type(4, false), pid);
    const Operand now = lowering.scalar_operand(lowering.types().uint64(), ir.call(ir::Helper::ktime_get_ns, {}));
    lowering.emit_event(runtime::kRememberProcess, {{{}, process}, {{}, now}}, span);
  });
}

}  // namespace espy::builtins
