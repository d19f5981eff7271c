// Spans, which begin and end in a thread, instants and counters. Each record has a time, a CPU, a thread and, for
// probes of a function, the frame of the call. output/spans.h builds trees from the records.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "builtins/common.h"
#include "builtins/held_spans.h"
#include "output/format.h"
#include "runtime/handler_context.h"

namespace espy::builtins {

namespace {

using check::Checker;
using lower::EventArgument;
using lower::Lowering;
using lower::Operand;
using output::SpanKind;
using runtime::EventRecord;
using runtime::HandlerContext;
using spec::CallBoundary;
using spec::CallSite;
using types::TypeId;

// Fields at the start of each record; the values of the call follow. Records of a tree that is held lack the thread.
enum Field : size_t { kTime, kFrame, kReturnAddress, kCpu, kProbe, kPid, kTid, kComm, kAllFields };
// Indexes of the numbers and literals of the schema. The literals from kFirstName on are the names of the values.
enum Number : size_t { kBoundary, kShownValues, kIsHeld };
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

// ---- In the kernel --------------------------------------------------------------------------------------------------

Operand number(Lowering& lowering, ir::ValueId value, uint32_t size_bytes) {
  return lowering.scalar_operand(lowering.types().int_type(size_bytes, false), value);
}

// What a record of the ring has after these, a record of a tree has once for all of them.
std::vector<EventArgument> common_fields(Lowering& lowering, bool is_held) {
  const CallFrame call = frame_of(lowering);
  std::vector<EventArgument> out = {{{}, number(lowering, lowering.ir().call(ir::Helper::ktime_get_boot_ns, {}), 8)},
                                    {{}, number(lowering, call.frame, 8)},
                                    {{}, number(lowering, call.return_address, 8)},
                                    {{}, number(lowering, lowering.cpu(), 4)},
                                    {{}, number(lowering, lowering.probe_index(), 4)}};
  if (is_held) return out;
  const CurrentTask task = current_task(lowering);
  out.insert(out.end(), {{{}, task.pid}, {{}, task.tid}, {{}, task.comm}});
  return out;
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
      literals.push_back(lower::value_name(lowering.ast(), lowering.unit(), value));
    } else if (record == nullptr) {
      add_value(lowering, value, lower::value_name(lowering.ast(), lowering.unit(), value), fields, literals);
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

// Calls `emit` with the buffer that takes the record, null for the ring.
void emit_or_keep(Lowering& lowering, SpanKind kind, const std::function<void(const lower::SpanBuffer*)>& emit) {
  if (!holds_spans(lowering)) return emit(nullptr);
  keep_span(lowering, kind, [&](const lower::SpanBuffer& buffer) { emit(&buffer); });
}

template <const char* const& kName, SpanKind kKind>
Operand lower_span(Lowering& lowering, const CallSite& call) {
  const std::string format = call.arguments.empty() ? "" : *lowering.text(call.arguments[0]);
  const size_t shown = shown_values(format);
  emit_or_keep(lowering, kKind, [&](const lower::SpanBuffer* buffer) {
    std::vector<EventArgument> fields = common_fields(lowering, buffer != nullptr);
    std::vector<std::string> literals = {format, name_format(format)};
    add_values(lowering, call, fields, literals, shown);
    const auto boundary = static_cast<int64_t>(lowering.unit().context.boundary);
    lowering.emit_event(kName, std::move(fields), call.span, std::move(literals),
                        {boundary, static_cast<int64_t>(shown), buffer != nullptr ? 1 : 0}, {}, buffer);
  });
  return {};
}

Operand lower_counter(Lowering& lowering, const CallSite& call) {
  emit_or_keep(lowering, SpanKind::kCounter, [&](const lower::SpanBuffer* buffer) {
    std::vector<EventArgument> fields = common_fields(lowering, buffer != nullptr);
    for (const syntax::ExprId argument : call.arguments) fields.push_back({argument, {}});
    lowering.emit_event("counter", std::move(fields), call.span, {"%s", "%s", "value"},
                        {0, 0, buffer != nullptr ? 1 : 0}, {}, buffer);
  });
  return {};
}

TypeId check_span(Checker& checker, const CallSite& call) {
  return call.arguments.empty() ? checker.types().void_type() : check_format_with_extra(checker, call);
}

// ---- In user space --------------------------------------------------------------------------------------------------

// The thread of a record.
struct Thread {
  uint32_t pid = 0, tid = 0;
  std::string comm;
};

Thread thread_of(const EventRecord& view, size_t pid_field = kPid) {
  return {static_cast<uint32_t>(view.integer(pid_field)), static_cast<uint32_t>(view.integer(pid_field + 1)),
          output::to_text(view.field(pid_field + 2), {})};
}

size_t first_value(const program::EventSchema& schema) { return schema.numbers[kIsHeld] != 0 ? kPid : kAllFields; }

output::SpanEvent event_of(const EventRecord& view, SpanKind kind, const Thread& thread) {
  output::SpanEvent event;
  event.kind = kind;
  event.time_ns = static_cast<uint64_t>(view.integer(kTime));
  event.pid = thread.pid;
  event.tid = thread.tid;
  event.cpu = static_cast<uint32_t>(view.integer(kCpu));
  event.comm = thread.comm;
  return event;
}

void add_counter(EventRecord& view, const Thread& thread) {
  const size_t first = first_value(view.schema());
  output::SpanEvent event = event_of(view, SpanKind::kCounter, thread);
  event.name = view.format(kNameFormat, first);
  event.arguments.emplace_back("value", view.field(first + 1));
  view.context().add_span(std::move(event), static_cast<size_t>(view.integer(kProbe)), {});
}

void add_span(EventRecord& view, SpanKind kind, const Thread& thread) {
  if (!view.context().wants_spans()) return;
  if (kind == SpanKind::kCounter) return add_counter(view, thread);
  const program::EventSchema& schema = view.schema();
  const size_t first = first_value(schema);
  output::SpanEvent event = event_of(view, kind, thread);
  event.text = view.format(kFormat, first);
  event.name = view.format(kNameFormat, first);
  for (size_t i = first; i < view.field_count(); ++i) {
    const auto name_at = [&](size_t at) { return schema.literals[kFirstName + at - first]; };
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

template <SpanKind kKind>
void handle_span(EventRecord& view) {
  add_span(view, kKind, thread_of(view));
}

constexpr const char* kEnter = "span_enter";
constexpr const char* kExit = "span_exit";
constexpr const char* kInstant = "instant";
constexpr const char* kCounter = "counter";

std::optional<SpanKind> kind_of(const program::EventSchema& schema) {
  constexpr std::pair<std::string_view, SpanKind> kKinds[] = {{kEnter, SpanKind::kEnter},
                                                              {kExit, SpanKind::kExit},
                                                              {kInstant, SpanKind::kInstant},
                                                              {kCounter, SpanKind::kCounter}};
  for (const auto& [name, kind] : kKinds)
    if (schema.builtin == name) return kind;
  return std::nullopt;
}

// ---- Trees that were held

// The records of a thread's buffer (program/span_buffer.h), as it was copied into the record of span_release().
class HeldRecords {
 public:
  explicit HeldRecords(EventRecord& view)
      : context_(view.context()),
        data_bytes_(static_cast<uint64_t>(view.schema().numbers[kTreeDataBytes])),
        head_(static_cast<uint64_t>(view.integer(kTreeHead))),
        data_(view.tail(kTreeData)) {}

  struct Held {
    SpanKind kind;
    EventRecord record;
    uint64_t next = 0;      // the position after it
    uint64_t previous = 0;  // of the record before it
  };
  // The record at a position; nullopt if there is none.
  std::optional<Held> at(uint64_t position) const {
    const uint64_t offset = position & (data_bytes_ - 1);
    program::RecordHeader header;
    if (position >= head_ || offset + sizeof(header) > data_.size()) return std::nullopt;
    std::memcpy(&header, data_.data() + offset, sizeof(header));
    const auto& events = context_.program().events;
    const bool is_whole = header.size_bytes >= sizeof(header) && header.size_bytes <= data_.size() - offset;
    if (!is_whole || header.event_plus_one == 0 || header.event_plus_one > events.size()) return std::nullopt;
    const program::EventSchema& schema = events[program::EventId{header.event_plus_one - 1}];
    const auto kind = kind_of(schema);
    if (!kind || header.size_bytes < schema.size_bytes) return std::nullopt;
    return Held{*kind, EventRecord(context_, schema, data_.subspan(offset, header.size_bytes)),
                position + header.size_bytes, header.sequence};
  }
  // Those from `begin` on, in order.
  std::vector<Held> from(uint64_t begin) const {
    std::vector<Held> out;
    for (uint64_t position = begin; position < head_;) {
      const auto held = at(position);
      if (!held && position % data_bytes_ == 0) break;
      position = held ? held->next : (position / data_bytes_ + 1) * data_bytes_;
      if (held) out.push_back(*held);
    }
    return out;
  }
  // Those of the last `calls` calls up to the record at `last`, in order. A record is still there if less than the
  // whole ring was written after it.
  std::vector<Held> before(uint64_t last, uint64_t calls) const {
    std::vector<uint64_t> positions;
    while (calls > 0 && last < head_ && head_ - last <= data_bytes_) {
      const auto held = at(last);
      if (!held) break;
      positions.push_back(last);
      if (held->kind == SpanKind::kEnter || held->kind == SpanKind::kInstant) --calls;
      if (held->previous >= last) break;
      last = held->previous;
    }
    std::vector<Held> out;
    for (auto each = positions.rbegin(); each != positions.rend(); ++each) out.push_back(*at(*each));
    return out;
  }

 private:
  HandlerContext& context_;
  uint64_t data_bytes_;
  uint64_t head_;
  std::span<const std::byte> data_;
};

// Ends of calls that began earlier are not shown.
void add_before(std::vector<HeldRecords::Held>& before, const Thread& thread) {
  size_t open = 0;
  for (auto& [kind, record, next, previous] : before) {
    if (kind == SpanKind::kExit && open == 0) continue;
    if (kind == SpanKind::kEnter) ++open;
    if (kind == SpanKind::kExit) --open;
    add_span(record, kind, thread);
  }
}

void add_left_out(EventRecord& last, const Thread& thread, int64_t count) {
  output::SpanEvent event = event_of(last, SpanKind::kInstant, thread);
  event.name = "left out";
  const uint64_t bytes = last.context().config().span_hold_bytes;
  event.text = fmt::format("{} more that did not fit into span_hold_bytes = {}", count, bytes);
  last.context().add_span(std::move(event), SIZE_MAX, {});
}

void handle_release(EventRecord& view) {
  HandlerContext& context = view.context();
  const HeldRecords records(view);
  std::vector<HeldRecords::Held> tree = records.from(static_cast<uint64_t>(view.integer(kTreeBegin)));
  if (tree.empty()) return;
  const auto time_of = [](const HeldRecords::Held& held) { return static_cast<uint64_t>(held.record.integer(kTime)); };
  if (context.spans().is_hidden(time_of(tree.front()))) return;
  const Thread thread = thread_of(view, kTreePid);
  auto before = records.before(static_cast<uint64_t>(view.integer(kTreeBefore)), context.config().span_before);
  add_before(before, thread);
  for (HeldRecords::Held& held : tree) {
    const int64_t left_out = view.integer(kTreeLeftOut);
    if (&held == &tree.back() && left_out > 0) add_left_out(held.record, thread, left_out);
    add_span(held.record, held.kind, thread);
  }
  context.spans().end_thread(event_of(tree.back().record, SpanKind::kExit, thread));
}

constexpr spec::Builtin kRows[] = {
    {.sig = "void span_enter(literal string format, ...)",
     .doc = "Begins a span in the current thread, named by the format; `span_exit` ends it. Spans are printed as a "
            "tree for each thread, or with `-f trace` as a file for chrome://tracing and Perfetto. Values after those "
            "that the format uses become arguments of the span, with their names in the script or, for a record such "
            "as `(n = arg0)`, the names of its members.",
     .check = check_span,
     .lower = lower_span<kEnter, SpanKind::kEnter>,
     .handle = handle_span<SpanKind::kEnter>,
     .example = "tracepoint:syscalls:sys_enter_read { span_enter(\"read(%d)\", args.fd); } "
                "tracepoint:syscalls:sys_exit_read { span_exit(\"%d\", args.ret); }"},
    {.sig = "void span_exit(literal string format = \"\", ...)",
     .doc = "Ends a span in the current thread: at the return of a function, the span of this call, otherwise the one "
            "that began last. A span without a begin or an end is marked.",
     .check = check_span,
     .lower = lower_span<kExit, SpanKind::kExit>,
     .handle = handle_span<SpanKind::kExit>,
     .example =
         "uprobe:/bin/bash:readline { span_enter(\"readline\"); } uretprobe:/bin/bash:readline { span_exit(); }"},
    {.sig = "void instant(literal string format, ...)",
     .doc = "Shows an event of the current thread in the tree of spans.",
     .check = check_span,
     .lower = lower_span<kInstant, SpanKind::kInstant>,
     .handle = handle_span<SpanKind::kInstant>,
     .example = "tracepoint:sched:sched_switch { instant(\"switch\", args.next_pid); }"},
    {.sig = "void counter(string name, int value)",
     .doc = "Shows the current value of a number; a graph over time with `-f trace`.",
     .lower = lower_counter,
     .handle = handle_span<SpanKind::kCounter>,
     .example = "interval:s:1 { counter(\"random\", rand % 100); }"},
    {.sig = "bool span_hold(int condition = 1)",
     .doc = "Begins a tree of the current thread: what follows in the thread is kept in the kernel, and shown only if "
            "`span_release` says so. Call it where the root of the tree begins, before `span_enter`. Does nothing if "
            "the condition is false, or within a tree. Returns whether a tree has begun. In a script that calls it, "
            "spans, instants and counters are shown only as parts of trees. A thread has `span_hold_bytes` for a tree; "
            "what does not fit is counted in the tree.",
     .lower = lower_span_hold,
     .needs = kernel::Feature::kAtomicFetch,
     .example = "uprobe:/bin/bash:readline { span_hold(); span_enter(\"readline\"); } "
                "uretprobe:/bin/bash:readline { span_exit(); span_release(retval == 0); }"},
    {.sig = "bool span_release(int condition)",
     .doc = "Ends the tree of the current thread where its root returns, after `span_exit`: shows it if the condition "
            "holds, and otherwise forgets it, at no cost in records. Call it at each return of the root: returns of "
            "calls within the tree end nothing. Returns whether the tree has ended.",
     .lower = lower_span_release,
     .handle = handle_release,
     .needs = kernel::Feature::kAtomicFetch,
     .example = "tracepoint:syscalls:sys_enter_read { span_hold(); span_enter(\"read\", args.fd); } "
                "tracepoint:syscalls:sys_exit_read { span_exit(\"%d\", args.ret); span_release(args.ret < 0); }"},
    {.sig = "void span_drop()",
     .doc = "Forgets the tree of the current thread and gives its memory back, as where the thread ends.",
     .lower = lower_span_drop,
     .needs = kernel::Feature::kAtomicFetch,
     .example = "uprobe:/bin/bash:readline { span_hold(); span_enter(\"readline\"); } "
                "uretprobe:/bin/bash:readline { span_exit(); span_release(retval == 0); } "
                "rawtracepoint:sched_process_exit { span_drop(); }"},
};

}  // namespace

extern const spec::BuiltinFamily kSpan = {.title = "Spans", .rows = kRows};

}  // namespace espy::builtins
