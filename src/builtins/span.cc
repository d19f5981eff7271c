// Spans, which begin and end in a thread, instants and counters. Each record has a time, a CPU, a thread and, for
// probes of a function, the frame of the call. output/spans.h builds trees from the records.
#include <algorithm>
#include <array>

#include "base/strings.h"
#include "builtins/common.h"
#include "output/format.h"
#include "runtime/handler_context.h"
#include "syntax/print.h"

namespace espy::builtins {

namespace {

using check::Checker;
using lower::EventArgument;
using lower::Lowering;
using lower::Operand;
using output::SpanKind;
using runtime::EventRecord;
using spec::CallBoundary;
using spec::CallSite;
using types::TypeId;

// Fields at the start of each record; the values of the call follow.
enum Field : size_t { kTime, kFrame, kReturnAddress, kPid, kTid, kCpu, kProbe, kComm, kFirstValue };
// Indexes of the numbers and literals of the schema. The literals from kFirstName on are the names of the values.
enum Number : size_t { kBoundary, kShownValues };
enum Literal : size_t { kFormat, kNameFormat, kFirstName };

// ---- Names ----------------------------------------------------------------------------------------------------------

// Returns the constant part of a format, which names the kind of span: "fib" of "(fib %d)", "%s" of "%s(%d)".
std::string name_format(const std::string& format) {
  const auto conversions = output::parse_format(format);
  if (!conversions || conversions->empty()) return format;
  const bool has_text_first = conversions->front().begin == 0 && conversions->front().conversion == "s";
  const size_t varying = has_text_first ? 1 : 0;
  if (varying == conversions->size()) return format;
  const std::string_view head = std::string_view(format).substr(0, (*conversions)[varying].begin);
  const size_t first = head.find_first_not_of(" ([{<");
  const size_t last = head.find_last_not_of(" ([{<:=,-\"'");
  return first == std::string_view::npos || last < first ? format : std::string(head.substr(first, last + 1 - first));
}

// Returns the name that the script uses for a value: "fd" for `args.fd`, "name" for `str($name)`.
std::string name_of_value(Lowering& lowering, syntax::ExprId expr) {
  const auto* call = lowering.ast().get<syntax::Call>(expr);
  const spec::Builtin* builtin = call ? lowering.unit().fact(expr).builtin : nullptr;
  if (builtin && builtin->reads_text_at && !call->arguments.empty()) return name_of_value(lowering, call->arguments[0]);
  std::string text = syntax::Printer(lowering.ast()).expr(expr);
  for (const std::string_view prefix : {"args.", "args->", "$"}) {
    const size_t at = text.find(prefix);
    if (at == 0 || (at == 1 && text[0] == '*')) text.erase(at, prefix.size());
  }
  return text;
}

// ---- In the kernel --------------------------------------------------------------------------------------------------

Operand number(Lowering& lowering, ir::ValueId value, uint32_t size_bytes) {
  return lowering.scalar_operand(lowering.types().int_type(size_bytes, false), value);
}

// Probes of a function identify the call by its frame. Returns the frame and the return address, 0 if unknown.
std::pair<ir::ValueId, ir::ValueId> frame_of(Lowering& lowering) {
  ir::Builder& ir = lowering.ir();
  const spec::ProbeContext& context = lowering.unit().context;
  if (!context.frame) return {ir.constant(0), ir.constant(0)};
  const ir::ValueId stack = ir.load(8, ir.context(), context.frame->register_offset_bytes);
  const ir::ValueId frame = ir.binary(ir::Op::k_add, stack, context.frame->displacement);
  if (!context.return_address) return {frame, ir.constant(0)};
  return {frame, lowering.context_field({"", lowering.types().uint64(), *context.return_address}).value};
}

std::vector<EventArgument> common_fields(Lowering& lowering) {
  const auto [frame, return_address] = frame_of(lowering);
  const CurrentTask task = current_task(lowering);
  return {{{}, number(lowering, lowering.ir().call(ir::Helper::ktime_get_boot_ns, {}), 8)},
          {{}, number(lowering, frame, 8)},
          {{}, number(lowering, return_address, 8)},
          {{}, task.pid},
          {{}, task.tid},
          {{}, number(lowering, lowering.cpu(), 4)},
          {{}, number(lowering, lowering.probe_index(), 4)},
          {{}, task.comm}};
}

// The value of an argument that is a `char *` is three fields, the text, the address and whether it could be read; the
// last two have no name. Other pointers to bytes are text for debuggers as well.
bool is_text_pointer(Lowering& lowering, syntax::ExprId expr) {
  if (lowering.config().print_layout != spec::PrintLayout::kC) return false;
  const types::Type& type = lowering.types()[lowering.type(expr)];
  if (type.kind != types::Kind::kPointer) return false;
  const types::Type& element = lowering.types()[type.element];
  return element.kind == types::Kind::kInt && element.size_bytes == 1;
}

// BTF does not tell whether a function of the kernel is given an address of the user or of the kernel.
ir::ValueId read_text(Lowering& lowering, ir::ValueId address, types::AddressSpace space, ir::ValueId text,
                      uint32_t size_bytes) {
  ir::Builder& ir = lowering.ir();
  const auto read_with = [&](ir::Helper helper) {
    return lowering.call_reader(helper, text, ir.constant(size_bytes), size_bytes, address);
  };
  const auto read_user = [&] { return read_with(ir::Helper::probe_read_user_str); };
  if (space == types::AddressSpace::kUser) return read_user();
  return lowering.select(
      ir::Condition::slt, address, ir.constant(0), [&] { return read_with(ir::Helper::probe_read_kernel_str); },
      read_user);
}

void add_text(Lowering& lowering, syntax::ExprId expr, std::string name, std::vector<EventArgument>& fields,
              std::vector<std::string>& literals) {
  constexpr uint64_t kMostBytes = 201;  // as debuggers show
  ir::Builder& ir = lowering.ir();
  types::Types& types = lowering.types();
  const auto size = static_cast<uint32_t>(std::min(lowering.config().max_strlen, kMostBytes));
  const types::AddressSpace space = types[lowering.type(expr)].space;
  const ir::ValueId address = lowering.scalar(expr);
  const ir::ValueId text = lowering.memory(size, "text");
  lowering.zero(text, size);
  const ir::ValueId got = read_text(lowering, address, space, text, size);
  const ir::ValueId is_read = lowering.select(
      ir::Condition::slt, got, ir.constant(0), [&] { return ir.constant(0); }, [&] { return ir.constant(1); });
  fields.push_back({{}, {types.string(size, true), text, true}});
  fields.push_back({{}, lowering.scalar_operand(lowering.type(expr), address)});
  fields.push_back({{}, number(lowering, is_read, 1)});
  literals.insert(literals.end(), {std::move(name), "", ""});
}

void add_value(Lowering& lowering, syntax::ExprId expr, std::string name, std::vector<EventArgument>& fields,
               std::vector<std::string>& literals) {
  if (is_text_pointer(lowering, expr)) return add_text(lowering, expr, std::move(name), fields, literals);
  fields.push_back({expr, {}});
  literals.push_back(std::move(name));
}

// Adds the values after those that the format uses. The members of a record literal are added one by one, with their
// names.
void add_values(Lowering& lowering, const CallSite& call, std::vector<EventArgument>& fields,
                std::vector<std::string>& literals, size_t shown) {
  const syntax::Ast& ast = lowering.ast();
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    const syntax::ExprId value = call.arguments[i];
    const auto* record = i > shown ? ast.get<syntax::Record>(value) : nullptr;
    if (i <= shown) {
      fields.push_back({value, {}});
      literals.push_back(name_of_value(lowering, value));
    } else if (record == nullptr) {
      add_value(lowering, value, name_of_value(lowering, value), fields, literals);
    } else {
      for (size_t j = 0; j < record->values.size(); ++j)
        add_value(lowering, record->values[j], record->names[j], fields, literals);
    }
  }
}

// Returns the number of values that the format uses.
size_t shown_values(const std::string& format) {
  size_t count = 0;
  const auto conversions = output::parse_format(format);
  if (!conversions) return 0;
  for (const output::Conversion& c : *conversions) count += 1 + (c.width == -2 ? 1 : 0) + (c.precision == -2 ? 1 : 0);
  return count;
}

template <const char* const& kName>
Operand lower_span(Lowering& lowering, const CallSite& call) {
  const std::string format = call.arguments.empty() ? "" : *lowering.text(call.arguments[0]);
  const size_t shown = shown_values(format);
  std::vector<EventArgument> fields = common_fields(lowering);
  std::vector<std::string> literals = {format, name_format(format)};
  add_values(lowering, call, fields, literals, shown);
  const auto boundary = static_cast<int64_t>(lowering.unit().context.boundary);
  lowering.emit_event(kName, std::move(fields), call.span, std::move(literals),
                      {boundary, static_cast<int64_t>(shown)});
  return {};
}

Operand lower_counter(Lowering& lowering, const CallSite& call) {
  std::vector<EventArgument> fields = common_fields(lowering);
  for (const syntax::ExprId argument : call.arguments) fields.push_back({argument, {}});
  lowering.emit_event("counter", std::move(fields), call.span, {"%s", "%s", "value"});
  return {};
}

TypeId check_span(Checker& checker, const CallSite& call) {
  return call.arguments.empty() ? checker.types().void_type() : check_format_with_extra(checker, call);
}

// ---- In user space --------------------------------------------------------------------------------------------------

output::SpanEvent event_of(const EventRecord& view, SpanKind kind) {
  output::SpanEvent event;
  event.kind = kind;
  event.time_ns = static_cast<uint64_t>(view.integer(kTime));
  event.pid = static_cast<uint32_t>(view.integer(kPid));
  event.tid = static_cast<uint32_t>(view.integer(kTid));
  event.cpu = static_cast<uint32_t>(view.integer(kCpu));
  event.comm = output::to_text(view.field(kComm), {});
  return event;
}

template <SpanKind kKind>
void handle_span(EventRecord& view) {
  if (!view.context().wants_spans()) return;
  const program::EventSchema& schema = view.schema();
  output::SpanEvent event = event_of(view, kKind);
  event.text = view.format(kFormat, kFirstValue);
  event.name = view.format(kNameFormat, kFirstValue);
  for (size_t i = kFirstValue; i < view.field_count(); ++i) {
    const auto name_at = [&](size_t at) { return schema.literals[kFirstName + at - kFirstValue]; };
    const bool is_text = i + 2 < view.field_count() && name_at(i + 1).empty();
    const bool is_unread = is_text && view.integer(i + 2) == 0;
    event.arguments.emplace_back(name_at(i), view.field(is_unread ? i + 1 : i));
    if (is_text) i += 2;
  }
  event.shown_arguments = static_cast<size_t>(schema.numbers[kShownValues]);
  const auto boundary = static_cast<CallBoundary>(schema.numbers[kBoundary]);
  const output::SpanPlace place{.is_entry = boundary == CallBoundary::kEntry,
                                .is_return = boundary == CallBoundary::kReturn,
                                .frame = static_cast<uint64_t>(view.integer(kFrame)),
                                .return_address = static_cast<uint64_t>(view.integer(kReturnAddress))};
  view.context().add_span(std::move(event), static_cast<size_t>(view.integer(kProbe)), place);
}

void handle_counter(EventRecord& view) {
  if (!view.context().wants_spans()) return;
  output::SpanEvent event = event_of(view, SpanKind::kCounter);
  event.name = view.format(kNameFormat, kFirstValue);
  event.arguments.emplace_back("value", view.field(kFirstValue + 1));
  view.context().add_span(std::move(event), static_cast<size_t>(view.integer(kProbe)), {});
}

constexpr const char* kEnter = "span_enter";
constexpr const char* kExit = "span_exit";
constexpr const char* kInstant = "instant";

constexpr spec::Builtin kRows[] = {
    {.sig = "void span_enter(literal string format, ...)",
     .doc = "Begins a span in the current thread, named by the format; `span_exit` ends it. Spans are printed as a "
            "tree for each thread, or with `-f trace` as a file for chrome://tracing and Perfetto. Values after those "
            "that the format uses become arguments of the span, with their names in the script or, for a record such "
            "as `(n = arg0)`, the names of its members.",
     .check = check_span,
     .lower = lower_span<kEnter>,
     .handle = handle_span<SpanKind::kEnter>,
     .example = "tracepoint:syscalls:sys_enter_read { span_enter(\"read(%d)\", args.fd); } "
                "tracepoint:syscalls:sys_exit_read { span_exit(\"%d\", args.ret); }"},
    {.sig = "void span_exit(literal string format = \"\", ...)",
     .doc = "Ends a span in the current thread: at the return of a function, the span of this call, otherwise the one "
            "that began last. A span without a begin or an end is marked.",
     .check = check_span,
     .lower = lower_span<kExit>,
     .handle = handle_span<SpanKind::kExit>,
     .example =
         "uprobe:/bin/bash:readline { span_enter(\"readline\"); } uretprobe:/bin/bash:readline { span_exit(); }"},
    {.sig = "void instant(literal string format, ...)",
     .doc = "Shows an event of the current thread in the tree of spans.",
     .check = check_span,
     .lower = lower_span<kInstant>,
     .handle = handle_span<SpanKind::kInstant>,
     .example = "tracepoint:sched:sched_switch { instant(\"switch\", args.next_pid); }"},
    {.sig = "void counter(string name, int value)",
     .doc = "Shows the current value of a number; a graph over time with `-f trace`.",
     .lower = lower_counter,
     .handle = handle_counter,
     .example = "interval:s:1 { counter(\"random\", rand % 100); }"},
};

}  // namespace

extern const spec::BuiltinFamily kSpan = {.title = "Spans", .rows = kRows};

}  // namespace espy::builtins
