// Output and the end of the run. These builtins are asynchronous: the program emits a record, and `handle` acts on it
// in user space.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "builtins/builtin_support.h"
#include "check/type_rules.h"
#include "output/format.h"
#include "runtime/handler_context.h"
#include "runtime/resolver.h"

namespace espy::builtins {

namespace {

using check::Checker;
using lower::EventArgument;
using lower::Lowering;
using lower::Operand;
using runtime::EventRecord;
using runtime::TextUse;
using spec::CallSite;
using types::Kind;
using types::TypeId;

// ---- printf and others with a format and values ---------------------------------------------------------------------

template <const char* const& kName>
Operand lower_format(Lowering& lowering, const CallSite& call) {
  lowering.emit_event(kName, values_from(lowering, call, 1), call.span, {*lowering.text(call.arguments[0])});
  return {};
}

constexpr const char* kErrorf = "errorf";
constexpr const char* kWarnf = "warnf";
constexpr const char* kPrintf = "printf";
constexpr const char* kCat = "cat";
constexpr const char* kSystem = "system";

void handle_printf(EventRecord& event) { event.context().sink().text("printf", event.shown(TextUse::kOutput)); }

// Prints a message with the location of the call in the script.
void report(EventRecord& event, std::string_view kind, std::string_view text) {
  const source::Sources& sources = event.context().sources();
  const source::Span span = event.schema().span;
  const source::Extent at = sources.extent(span);
  event.context().sink().message(kind, text, at.source, at.line, at.begin_column, at.end_column);
  if (span.expansion.valid()) event.context().sink().explain(source::expansion_chain(span, sources));
}

void handle_errorf(EventRecord& event) { report(event, "errorf", event.shown(TextUse::kMessage)); }
void handle_warnf(EventRecord& event) {
  if (event.context().config().warns) report(event, "warnf", event.shown(TextUse::kMessage));
}

void handle_cat(EventRecord& event) {
  const std::string path = event.format(0, 0);
  const uint64_t max_bytes = event.context().config().limits.max_cat_bytes;
  auto text = read_start_of_file(path, max_bytes + 1);
  if (!text) {
    event.context().sink().message("runtime_error", text.error().message, "", 0, 0, 0);
    return;
  }
  if (text->size() > max_bytes) {
    text->resize(max_bytes);
    event.context().note_cut_file();
  }
  event.context().sink().text(
      "cat", output::shown_memory(*std::move(text), event.context().decoder().style(TextUse::kOutput)));
}

void handle_system(EventRecord& event) { event.context().run_command(event.format(0, 0)); }

// ---- print, clear, zero ---------------------------------------------------------------------------------------------

// True if the argument is a map without a key: a keyed map, or a scalar map that is printed with its name.
bool is_whole_map(const check::Unit& unit, const syntax::Ast& ast, syntax::ExprId expr) {
  return ast.get<syntax::Map>(expr) != nullptr && unit.fact(expr).map.valid();
}

constexpr std::string_view kByValue = "value", kByKey = "key";  // the order of a map's entries

TypeId check_print(Checker& checker, const CallSite& call) {
  for (size_t i = 1; i < std::min<size_t>(call.arguments.size(), 3); ++i) {
    const auto number = checker.integer(call.arguments[i]);
    const source::Span span = checker.ast()[call.arguments[i]].span;
    if (!number)
      checker.error("not-constant", span, "the `top` and `div` of `print` must be constants");
    else if (*number < 0)
      checker.error("negative-count", span, "the `top` and `div` of `print` must not be negative");
  }
  if (call.arguments.size() > 1 && !is_whole_map(checker.unit(), checker.ast(), call.arguments[0]))
    checker.error("not-a-map", checker.ast()[call.arguments[0]].span,
                  "`top` and `div` need a whole map, without a key");
  const auto order = call.arguments.size() > 3 ? checker.text(call.arguments[3]) : std::nullopt;
  if (order && *order != kByValue && *order != kByKey)
    checker.error("wrong-argument", checker.ast()[call.arguments[3]].span,
                  fmt::format("the order must be \"{}\" or \"{}\"", kByValue, kByKey));
  return checker.types().void_type();
}

int64_t constant_or(Lowering& lowering, const CallSite& call, size_t index, int64_t default_value) {
  return index < call.arguments.size() ? lowering.integer(call.arguments[index]).value_or(default_value)
                                       : default_value;
}

// True for an element of a map of histograms or the like, which only user space can put together.
bool is_composite_element(Lowering& lowering, syntax::ExprId what) {
  const auto* index = lowering.ast().get<syntax::Index>(what);
  if (index == nullptr || !lowering.unit().fact(what).map.valid()) return false;
  const Kind kind = lowering.types()[lowering.type(what)].kind;
  return kind == Kind::kHist || kind == Kind::kLhist || kind == Kind::kTseries || kind == Kind::kStats;
}

// A map of recent() without keys is shown as it is at the time of the call, which is passed for this.
std::vector<EventArgument> time_of_print(Lowering& lowering, program::ScriptMapId map) {
  const check::CheckedMap& what = lowering.checked().maps[map];
  const bool is_scalar = lowering.types()[what.key].kind == Kind::kVoid;
  if (!is_scalar || lowering.types()[what.value].kind != Kind::kRecent) return {};
  const ir::ValueId now = lowering.ir().call(ir::Helper::ktime_get_ns, {});
  return {{{}, lowering.scalar_operand(lowering.types().uint64(), now)}};
}

Operand lower_print(Lowering& lowering, const CallSite& call) {
  const syntax::ExprId what = call.arguments[0];
  if (is_whole_map(lowering.unit(), lowering.ast(), what)) {
    const program::ScriptMapId map = lowering.unit().fact(what).map;
    const bool is_by_key = call.arguments.size() > 3 && lowering.text(call.arguments[3]) == kByKey;
    lowering.emit_event("print", time_of_print(lowering, map), call.span,
                        is_by_key ? std::vector<std::string>{std::string(kByKey)} : std::vector<std::string>(),
                        {constant_or(lowering, call, 1, 0), constant_or(lowering, call, 2, 0)}, map);
  } else if (is_composite_element(lowering, what)) {
    const Lowering::MapElement element = lowering.element(what);
    const TypeId key = lowering.checked().maps[element.map].key;
    const TypeId bytes = lowering.types().array(lowering.types().int_type(1, false), lowering.types()[key].size_bytes);
    lowering.emit_event("print", {{{}, Operand{bytes, element.key, true}}}, call.span, {}, {}, element.map);
  } else {
    lowering.emit_event("print", {{what, {}}}, call.span);
  }
  return {};
}

void handle_print(EventRecord& event) {
  const program::EventSchema& schema = event.schema();
  const bool is_whole_map = schema.map.valid() && !schema.numbers.empty();
  if (is_whole_map) {
    const uint64_t until = event.field_count() > 0 ? static_cast<uint64_t>(event.integer(0)) : UINT64_MAX;
    event.context().print_map(schema.map, static_cast<uint64_t>(schema.numbers[0]),
                              static_cast<uint64_t>(schema.numbers[1]), until, !schema.literals.empty());
  } else if (schema.map.valid()) {
    event.context().print_element(schema.map, event.bytes_from(0));
  } else {
    event.context().sink().value(event.field(0));
  }
}

template <const char* const& kName>
Operand lower_on_map(Lowering& lowering, const CallSite& call) {
  lowering.emit_event(kName, {}, call.span, {}, {}, lowering.unit().fact(call.arguments[0]).map);
  return {};
}

constexpr const char* kClear = "clear";
constexpr const char* kZero = "zero";

void handle_clear(EventRecord& event) { event.context().clear_map(event.schema().map); }
void handle_zero(EventRecord& event) { event.context().zero_map(event.schema().map); }

// ---- exit, time, join -----------------------------------------------------------------------------------------------

Operand lower_exit(Lowering& lowering, const CallSite& call) {
  std::vector<EventArgument> code;
  ir::ValueId status = lowering.ir().constant(0);
  if (!call.arguments.empty()) {
    status = lowering.scalar(call.arguments[0]);
    code = {{{}, lowering.scalar_operand(lowering.types().int64(), status)}};
  }
  lowering.emit_event("exit", std::move(code), call.span);
  lowering.set_exit_flag(status);
  lowering.end_action();
  return {};
}

void handle_exit(EventRecord& event) {
  event.context().request_exit(event.field_count() > 0 ? static_cast<int>(event.integer(0)) : 0);
}

Operand lower_time(Lowering& lowering, const CallSite& call) {
  const std::string format = call.arguments.empty() ? "%H:%M:%S\n" : *lowering.text(call.arguments[0]);
  lowering.emit_event("time", {}, call.span, {format});
  return {};
}

void handle_time(EventRecord& event) {
  const std::string& format = event.schema().literals[0];
  event.context().sink().text("time", runtime::format_time(format, clock_ns(CLOCK_REALTIME), CLOCK_REALTIME));
}

// ---- join: the strings of a NULL-terminated array of pointers -------------------------------------------------------

constexpr int kJoinedStrings = 16;
constexpr uint64_t kJoinedBytes = 1024;  // of each string, with its NUL, also if max_strlen is smaller

TypeId check_join(Checker& checker, const CallSite& call) {
  const TypeId given = checker.type(call.arguments[0]);
  const types::Type& type = checker.types()[given];
  const bool has_pointers = type.kind == Kind::kArray && checker.types()[type.element].kind == Kind::kPointer;
  if (given && (type.kind == Kind::kString || (type.kind == Kind::kArray && !has_pointers)))
    checker.error(
        "wrong-argument", checker.ast()[call.arguments[0]].span,
        "`join`'s first argument must be an array of pointers, not `" + to_string(checker.types(), given) + "`");
  return checker.types().void_type();
}

// The strings are in the address space of the array: argv is in user memory, and so are its strings. The first field is
// the number of strings.
Operand lower_join(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const MemoryRef array = referenced_memory(lowering, call.arguments[0]);
  const TypeId text =
      lowering.types().string(static_cast<uint32_t>(std::max(lowering.config().limits.max_strlen, kJoinedBytes)), true);
  std::vector<EventArgument> fields = {{}};
  ir::ValueId count = ir.constant(0);
  ir::ValueId is_before_end = ir.constant(1);
  for (int i = 0; i < kJoinedStrings; ++i) {
    // Behind the end the beginning is read again: what is there need not be pointers, nor be there at all.
    const ir::ValueId at = ir.binary(ir::Op::k_add, array.address, ir.binary(ir::Op::k_mul, is_before_end, i * 8));
    const ir::ValueId string = lowering.read_scalar(at, 0, 8, false, array.space);
    is_before_end = ir.binary(ir::Op::k_and, is_before_end, ir.binary(ir::Op::k_ne, string, 0));
    count = ir.binary(ir::Op::k_add, count, is_before_end);
    const ir::ValueId distance = ir.binary(ir::Op::k_sub, string, array.address);
    const ir::ValueId there =
        ir.binary(ir::Op::k_add, array.address, ir.binary(ir::Op::k_mul, is_before_end, distance));
    Operand operand{text, there, true, array.space, {}};
    fields.push_back({{}, operand});
  }
  fields[0] = {{}, lowering.scalar_operand(lowering.types().int64(), count)};
  const bool has_separator = call.arguments.size() > 1;
  lowering.emit_event("join", std::move(fields), call.span, {has_separator ? *lowering.text(call.arguments[1]) : " "});
  return {};
}

void handle_join(EventRecord& event) {
  const auto count = static_cast<size_t>(event.integer(0));
  std::string out;
  for (size_t i = 1; i <= count && i < event.field_count(); ++i) {
    if (i > 1) out += event.schema().literals[0];
    out += output::to_text(event.field(i), event.context().decoder().style(TextUse::kOutput));
  }
  event.context().sink().text_line("join", out);
}

// ---- assert

TypeId check_assert(Checker& checker, const CallSite& call) {
  const TypeId condition = checker.type(call.arguments[0]);
  if (condition && !check::is_truthy(checker.types()[condition])) {
    const std::string given = "`" + to_string(checker.types(), condition) + "`";
    checker.error("not-a-condition", checker.ast()[call.arguments[0]].span,
                  "a condition must be an integer, a pointer or a string, not " + given);
  }
  return checker.types().void_type();
}

Operand lower_assert(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ir::ValueId condition = lowering.truth(call.arguments[0]);
  lowering.when(ir::Condition::eq, condition, ir.constant(0), [&] {
    lowering.emit_event("assert", {}, call.span, {lowering.text(call.arguments[1]).value_or("assertion failed")});
    lowering.set_exit_flag(ir.constant(1));
    lowering.end_action();
  });
  return {};
}

void handle_assert(EventRecord& event) {
  report(event, "errorf", event.schema().literals[0]);
  event.context().request_exit(1);
}

// ---- debugf: the kernel's trace buffer ------------------------------------------------------------------------------

// bpf_trace_printk() takes up to three values in registers, bpf_trace_vprintk() (Linux 5.16) an array.

constexpr size_t kTracedInRegisters = 3;
constexpr size_t kMaxTraced = 12;  // MAX_BPRINTF_VARARGS

TypeId check_debugf(Checker& checker, const CallSite& call) {
  if (call.arguments.size() > 1 + kMaxTraced)
    checker.error("debugf-arguments", call.span, "`debugf` takes at most twelve values");
  if (const auto conversions = output::parse_format(checker.text(call.arguments[0]).value_or("")))
    for (const output::Conversion& each : *conversions)
      if (each.conversion == "f")
        checker.error("bad-format", checker.ast()[call.arguments[0]].span, "the kernel has no `%f`");
  return check_format(checker, call);
}

// The helpers take the conversions of the kernel's printk(), where a 64-bit number is %lld, and refuse a `%` that
// begins none.
std::string kernel_format(Lowering& lowering, const CallSite& call) {
  const std::string format = *lowering.text(call.arguments[0]);
  const auto conversions = output::parse_format(format);
  if (!conversions) return format;
  const std::vector<size_t> strays = output::stray_percents(format);
  std::string out;
  const auto append_until = [&](size_t& at, size_t end) {
    for (; at < end; ++at) out.append(std::ranges::binary_search(strays, at) ? "%%" : format.substr(at, 1));
  };
  size_t at = 0;
  for (size_t i = 0; i < conversions->size(); ++i) {
    const output::Conversion& conversion = (*conversions)[i];
    append_until(at, conversion.begin);
    const bool is_number = conversion.conversion.find_first_of("diuxX") == 0;
    const bool is_c_int = i + 1 < call.arguments.size() && conversion.length.empty() &&
                          output::is_c_int(lowering.types()[lowering.type(call.arguments[i + 1])]);
    out += (is_number && !is_c_int ? "%ll" : "%") + conversion.conversion;
    at = conversion.end;
  }
  append_until(at, format.size());
  return out + '\0';
}

Operand lower_debugf(Lowering& lowering, const CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const std::string format = kernel_format(lowering, call);
  const ir::ValueId text = lowering.constant_bytes(format);
  const ir::ValueId text_size = ir.constant(static_cast<int64_t>(format.size()));
  std::vector<ir::ValueId> values;
  for (size_t i = 1; i < call.arguments.size(); ++i)
    values.push_back(lowering.in_our_memory(lowering.value(call.arguments[i])).value);
  if (values.size() <= kTracedInRegisters) {
    values.resize(kTracedInRegisters, ir.constant(0));
    ir.call(ir::Helper::trace_printk, {text, text_size, values[0], values[1], values[2]});
    return {};
  }
  const auto size = static_cast<uint32_t>(values.size() * sizeof(uint64_t));
  const ir::ValueId array = lowering.memory(size, "traced");
  for (size_t i = 0; i < values.size(); ++i) ir.store(8, array, values[i], static_cast<int64_t>(i * sizeof(uint64_t)));
  ir.call(ir::Helper::trace_vprintk, {text, text_size, array, ir.constant(size)});
  return {};
}

constexpr spec::Builtin kRows[] = {
    {.sig = "void printf(literal string format, ...)",
     .doc = "Prints the values with a format: the conversions of printf(3), `%s` for any value, `%r` for buffers. "
            "`%.2f` prints an integer, or the quotient of a tuple `(a, b)`.",
     .check = check_format,
     .lower = lower_format<kPrintf>,
     .handle = handle_printf,
     .example = "begin { printf(\"%d %s\\n\", 42, \"answer\"); }"},
    {.sig = "void errorf(literal string format, ...)",
     .doc = "Prints like `printf`, as an error with its location in the script.",
     .check = check_format,
     .lower = lower_format<kErrorf>,
     .handle = handle_errorf,
     .example = "begin { errorf(\"bad: %d\", 42); }"},
    {.sig = "void warnf(literal string format, ...)",
     .doc = "Prints like `printf`, as a warning with its location in the script.",
     .check = check_format,
     .lower = lower_format<kWarnf>,
     .handle = handle_warnf,
     .example = "begin { warnf(\"odd: %d\", 42); }"},
    {.sig = "void debugf(literal string format, ...)",
     .doc = "Prints to the kernel's trace buffer, /sys/kernel/tracing/trace_pipe, without buffering in espy. At most "
            "twelve values.",
     .check = check_debugf,
     .lower = lower_debugf,
     .example = "begin { debugf(\"here: %d\", 42); }"},
    {.sig = "void print(any or map value, int top = 0, int div = 0, literal string order = \"value\")",
     .doc = "Prints a value or a whole map; of a map, only the `top` largest entries, with their values divided by "
            "`div`. The order is \"value\" or \"key\".",
     .check = check_print,
     .lower = lower_print,
     .handle = handle_print,
     .example = "begin { @x[1] = 10; @x[2] = 20; print(@x, 1, 10); clear(@x); }"},
    {.sig = "void clear(map m)",
     .doc = "Removes all entries of a map. Takes effect in user space, in the order of the output.",
     .lower = lower_on_map<kClear>,
     .handle = handle_clear,
     .removes_keys = true,
     .example = "begin { @x = 1; clear(@x); }"},
    {.sig = "void zero(map m)",
     .doc = "Sets all values of a map to zero and keeps its keys.",
     .lower = lower_on_map<kZero>,
     .handle = handle_zero,
     .removes_keys = true,
     .example = "begin { @x[1] = 1; zero(@x); }"},
    {.sig = "void exit(int code = 0)",
     .doc = "Ends the run. The action stops here, `end` probes run, and maps are printed. `code` is the exit status of "
            "espy.",
     .lower = lower_exit,
     .handle = handle_exit,
     .ends_action = true,
     .example = "begin { exit(); }"},
    {.sig = "void time(literal string format = \"%H:%M:%S\\n\")",
     .doc = "Prints the wall-clock time at which user space reads the record, formatted by strftime(3).",
     .lower = lower_time,
     .handle = handle_time,
     .example = "begin { time(\"%Y\\n\"); }"},
    {.sig = "void join(pointer strings, literal string separator = \" \")",
     .doc = "Prints the strings of a NULL-terminated array of pointers, such as argv; at most 16.",
     .check = check_join,
     .lower = lower_join,
     .handle = handle_join,
     .example = "tracepoint:syscalls:sys_enter_execve { join(args.argv); }"},
    {.sig = "void assert(any condition, literal string message)",
     .doc = "If the condition is false, prints the message as an error and ends the run with exit status 1.",
     .check = check_assert,
     .lower = lower_assert,
     .handle = handle_assert,
     .example = "begin { assert(1 < 2, \"numbers are broken\"); }"},
    {.sig = "void cat(literal string format, ...)",
     .doc = "Prints a file, up to `max_cat_bytes`. The format makes its path.",
     .check = check_format,
     .lower = lower_format<kCat>,
     .handle = handle_cat,
     .example = "begin { cat(\"/proc/loadavg\"); }"},
    {.sig = "void system(literal string format, ...)",
     .doc = "Runs a command in a shell and prints its output. The format makes the command. Needs `--unsafe`.",
     .check = check_format,
     .lower = lower_format<kSystem>,
     .handle = handle_system,
     .is_unsafe = true,
     .example = "begin { system(\"echo hi\"); }"},
};

}  // namespace

extern const spec::BuiltinFamily kOutput = {.title = "Output", .rows = kRows};

}  // namespace espy::builtins
