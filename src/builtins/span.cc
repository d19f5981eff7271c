// Spans, instants and counters. Each record has the time, the CPU, the thread, the probe, and for functions the frame,
// which identifies the call; output/spans.h builds trees from them.
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

// What every record begins with; the values of the call follow.
enum Field : size_t { kTime, kFrame, kReturnAddress, kPid, kTid, kCpu, kProbe, kComm, kFirstValue };
// The schema's numbers and literals; names of the values follow those.
enum Number : size_t { kEdge, kShownValues };
enum Literal : size_t { kFormat, kNameFormat, kFirstName };

// ---- Names ----------------------------------------------------------------------------------------------------------

// The part of a format that all of its kind have in common: of "(fib %d)" it is "fib", of "%s(%d)" "%s".
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

// How the script names a value: `args.fd` is "fd", `str($name)` is "name".
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

// The frame and the return address, which identify the call in a function's probe; zeros in other probes.
std::pair<ir::ValueId, ir::ValueId> frame_of(Lowering& lowering) {
  ir::Builder& ir = lowering.ir();
  const spec::ProbeContext& context = lowering.unit().context;
  if (!context.frame) return {ir.constant(0), ir.constant(0)};
  const ir::ValueId stack = ir.load(8, ir.context(), context.frame->register_offset_bytes);
  const ir::ValueId frame = ir.binary(ir::Op::k_add, stack, context.frame->displacement);
  if (!context.return_address) return {frame, ir.constant(0)};
  return {frame, lowering.context_field({"", lowering.types().uint64(), *context.return_address}).value};
}

std::vector<EventArgument> head_of(Lowering& lowering) {
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

// Values behind those that the format shows; a record's literal stands for its members, with their names.
void add_values(Lowering& lowering, const CallSite& call, std::vector<EventArgument>& fields,
                std::vector<std::string>& literals, size_t shown) {
  const syntax::Ast& ast = lowering.ast();
  for (size_t i = 1; i < call.arguments.size(); ++i) {
    const syntax::ExprId value = call.arguments[i];
    const auto* record = i > shown ? ast.get<syntax::Record>(value) : nullptr;
    if (record == nullptr) {
      fields.push_back({value, {}});
      literals.push_back(name_of_value(lowering, value));
      continue;
    }
    for (size_t j = 0; j < record->values.size(); ++j) {
      fields.push_back({record->values[j], {}});
      literals.push_back(record->names[j]);
    }
  }
}

// The values that the format's conversions take.
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
  std::vector<EventArgument> fields = head_of(lowering);
  std::vector<std::string> literals = {format, name_format(format)};
  add_values(lowering, call, fields, literals, shown);
  const auto edge = static_cast<int64_t>(lowering.unit().context.boundary);
  lowering.emit_event(kName, std::move(fields), call.span, std::move(literals), {edge, static_cast<int64_t>(shown)});
  return {};
}

Operand lower_counter(Lowering& lowering, const CallSite& call) {
  std::vector<EventArgument> fields = head_of(lowering);
  for (const syntax::ExprId argument : call.arguments) fields.push_back({argument, {}});
  lowering.emit_event("counter", std::move(fields), call.span, {"%s", "%s", "value"});
  return {};
}

TypeId check_span(Checker& checker, const CallSite& call) {
  return call.arguments.empty() ? checker.types().void_type() : check_format_and_more(checker, call);
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
  for (size_t i = kFirstValue; i < view.field_count(); ++i)
    event.arguments.emplace_back(schema.literals[kFirstName + i - kFirstValue], view.field(i));
  event.shown_arguments = static_cast<size_t>(schema.numbers[kShownValues]);
  const auto edge = static_cast<CallBoundary>(schema.numbers[kEdge]);
  const output::SpanPlace place{.is_entry = edge == CallBoundary::kEntry,
                                .is_return = edge == CallBoundary::kReturn,
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
     .doc =
         "Begins a span in the current thread, named by the format; `span_exit` ends it. Spans within spans are shown "
         "as a tree for each thread, or with `-f trace` as a file for chrome://tracing and Perfetto. Values behind "
         "those that the format takes are its arguments, by the names that the script has for them, or those of a "
         "record: `(n = arg0)`.",
     .check = check_span,
     .lower = lower_span<kEnter>,
     .handle = handle_span<SpanKind::kEnter>,
     .example = "tracepoint:syscalls:sys_enter_read { span_enter(\"read(%d)\", args.fd); } "
                "tracepoint:syscalls:sys_exit_read { span_exit(\"%d\", args.ret); }"},
    {.sig = "void span_exit(literal string format = \"\", ...)",
     .doc = "Ends a span in the current thread: at a function's return that of this call, else what began last. What "
            "has no begin or no end is marked.",
     .check = check_span,
     .lower = lower_span<kExit>,
     .handle = handle_span<SpanKind::kExit>,
     .example =
         "uprobe:/bin/bash:readline { span_enter(\"readline\"); } uretprobe:/bin/bash:readline { span_exit(); }"},
    {.sig = "void instant(literal string format, ...)",
     .doc = "Shows that something happened in the current thread, at its place in the tree of spans.",
     .check = check_span,
     .lower = lower_span<kInstant>,
     .handle = handle_span<SpanKind::kInstant>,
     .example = "tracepoint:sched:sched_switch { instant(\"switch\", args.next_pid); }"},
    {.sig = "void counter(string name, int value)",
     .doc = "Shows what a number is now: a graph over time with `-f trace`.",
     .lower = lower_counter,
     .handle = handle_counter,
     .example = "interval:s:1 { counter(\"random\", rand % 100); }"},
};

}  // namespace

extern const spec::BuiltinFamily kSpan = {.title = "Spans", .rows = kRows};

}  // namespace espy::builtins
