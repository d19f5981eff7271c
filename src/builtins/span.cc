#include "builtins/span.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "builtins/builtin_support.h"
#include "output/format.h"
#include "program/layout.h"
#include "runtime/handler_context.h"

namespace espy::builtins {

namespace {

using ir::Condition;
using ir::Op;
using ir::ValueId;
using lower::Lowering;
using lower::Operand;
using output::SpanKind;
using spec::CallBoundary;

constexpr uint32_t kUserStackBytes = 8 << 20;
constexpr uint32_t kKernelStackBytes = 16 << 10;
constexpr uint32_t kRootExitBytes = 1024;  // kept free for the record of the root's end
constexpr int64_t kIdleThread = int64_t{1} << 62;

program::MapId map_named(Lowering& lowering, program::BpfMap map) {
  program::Program& program = lowering.program();
  for (const program::MapId id : program.maps.ids())
    if (program.maps[id].name == map.name) return id;
  return program.maps.add(std::move(map));
}

uint32_t thread_count(Lowering& lowering) { return static_cast<uint32_t>(lowering.config().spans.hold_threads); }
uint32_t data_bytes(Lowering& lowering) { return static_cast<uint32_t>(lowering.config().spans.hold_bytes); }
bool keeps_before(Lowering& lowering) { return lowering.config().spans.before != 0; }

program::MapId owners_map(Lowering& lowering) {
  return map_named(lowering, {.name = std::string(program::kSpanOwnersMap),
                              .value_size = program::kSpanOwners + thread_count(lowering) * 8,
                              .is_mmapable = true});
}

program::MapId buffers_map(Lowering& lowering) {
  return map_named(lowering, {.name = std::string(program::kSpanBuffersMap),
                              .value_size = program::kSpanHeaderBytes + data_bytes(lowering),
                              .max_entries = thread_count(lowering)});
}

ValueId owners(Lowering& lowering, uint32_t offset_bytes) {
  return lowering.ir().map_value(owners_map(lowering), offset_bytes);
}

void count(Lowering& lowering, ValueId address, int64_t offset_bytes, int64_t by = 1) {
  lowering.ir().atomic_add(8, address, lowering.ir().constant(by), offset_bytes);
}

void count_tree(Lowering& lowering, uint32_t counter) { count(lowering, owners(lowering, counter), 0); }

// ---- Which buffer a thread has

// A number that is not 0 and differs between threads. All idle threads have the id 0.
ValueId current_thread(Lowering& lowering) {
  ir::Builder& ir = lowering.ir();
  const ValueId ids = ir.call(ir::Helper::get_current_pid_tgid, {});
  return lowering.select(
      Condition::ne, ids, ir.constant(0), [&] { return ids; },
      [&] { return ir.binary(Op::k_add, lowering.cpu(), ir.constant(kIdleThread)); });
}

struct Buffer {
  ValueId address;
};

class BufferFinder {
 public:
  explicit BufferFinder(Lowering& lowering)
      : lowering_(lowering),
        ir_(lowering.ir()),
        index_(ir_.add_variable("span_buffer")),
        is_new_(ir_.add_variable("span_buffer_is_new")) {}

  // Emits `found` for the thread's buffer; `none`, which may be null, if it has none. A thread without takes a free one
  // if `takes_free` is valid and not 0.
  void find(ValueId takes_free, const std::function<void(const Buffer&)>& found, const std::function<void()>& none) {
    ir_.store(8, ir_.slot(is_new_), ir_.constant(0));
    const ir::BlockId found_one = ir_.add_block("span_buffer");
    const ir::BlockId done = ir_.add_block();
    const ValueId thread = current_thread(lowering_);
    const ValueId hash = ir_.binary(Op::k_shr, ir_.binary(Op::k_mul, thread, ir_.constant(kMultiplier)), 32);
    const std::array<ValueId, 2> buckets = {bucket(hash), bucket(ir_.binary(Op::k_shr, hash, 16))};
    for (const ValueId bucket : buckets) search(bucket, thread, found_one);
    if (takes_free.valid())
      lowering_.when(Condition::ne, takes_free, ir_.constant(0), [&] {
        for (const ValueId bucket : buckets) take(bucket, thread, found_one);
      });
    if (none) none();
    ir_.jump(done);
    ir_.enter(found_one);
    // No comparison of the index here: the verifier would follow the places where it was found one by one.
    use(ir_.load(8, ir_.slot(index_)), takes_free.valid(), found, none);
    ir_.jump(done);
    ir_.enter(done);
  }

 private:
  static constexpr int64_t kMultiplier = static_cast<int64_t>(0x9E3779B97F4A7C15);  // 2^64 / golden ratio

  ValueId bucket(ValueId hash) {
    return ir_.binary(Op::k_and, hash, thread_count(lowering_) / program::kSpanBucketWords - 1);
  }
  ValueId words_of(ValueId bucket) {
    return ir_.binary(Op::k_add, owners(lowering_, program::kSpanOwners), ir_.binary(Op::k_shl, bucket, 6));
  }

  void leave_if(ValueId word, ValueId wanted, ValueId bucket, uint32_t i, bool is_new, ir::BlockId end) {
    const ir::BlockId hit = ir_.add_block();
    const ir::BlockId next = ir_.add_block();
    ir_.branch(Condition::eq, word, wanted, hit, next);
    ir_.enter(hit);
    ir_.store(8, ir_.slot(index_), ir_.binary(Op::k_add, ir_.binary(Op::k_shl, bucket, 3), int64_t{i}));
    if (is_new) ir_.store(8, ir_.slot(is_new_), ir_.constant(1));
    ir_.jump(end);
    ir_.enter(next);
  }
  void search(ValueId bucket, ValueId thread, ir::BlockId end) {
    const ValueId words = words_of(bucket);
    for (uint32_t i = 0; i < program::kSpanBucketWords; ++i)
      leave_if(ir_.load(8, words, int64_t{i} * 8), thread, bucket, i, false, end);
  }
  void take(ValueId bucket, ValueId thread, ir::BlockId end) {
    const ValueId words = words_of(bucket);
    const ValueId free = ir_.constant(0);
    for (uint32_t i = 0; i < program::kSpanBucketWords; ++i)
      leave_if(ir_.atomic(Op::k_atomic_cmpxchg, 8, words, {free, thread}, int64_t{i} * 8), free, bucket, i, true, end);
  }

  void use(ValueId index, bool may_be_new, const std::function<void(const Buffer&)>& found,
           const std::function<void()>& none) {
    const ValueId key = lowering_.memory(8, "span_buffer");
    ir_.store(4, key, index);
    const ValueId address = ir_.call(ir::Helper::map_lookup_elem, {ir_.map(buffers_map(lowering_)), key});
    lowering_.when(
        Condition::ne, address, ir_.constant(0),
        [&] {
          if (may_be_new) {
            const ValueId is_new = ir_.load(8, ir_.slot(is_new_));
            lowering_.when(Condition::ne, is_new, ir_.constant(0), [&] { clear(address, index); });
          }
          found({address});
        },
        none);
  }
  void clear(ValueId address, ValueId index) {
    const ValueId zero = ir_.constant(0);
    ir_.store(8, address, zero, program::kSpanHead);
    ir_.store(8, address, zero, program::kSpanDepth);
    ir_.store(8, address, zero, program::kSpanSkipped);
    ir_.store(8, address, index, program::kSpanIndex);
    ir_.store(8, address, ir_.constant(program::kNoSpanRecord), program::kSpanLast);
  }

  Lowering& lowering_;
  ir::Builder& ir_;
  ir::SlotId index_, is_new_;
};

// ---- Trees

void give_back(Lowering& lowering, const Buffer& buffer) {
  ir::Builder& ir = lowering.ir();
  // The index from before would be another state of the verifier for each place where the buffer can be found.
  const ValueId own = ir.load(8, buffer.address, program::kSpanIndex);
  const ValueId index = ir.binary(Op::k_and, own, thread_count(lowering) - 1);
  const ValueId words = owners(lowering, program::kSpanOwners);
  ir.store(8, ir.binary(Op::k_add, words, ir.binary(Op::k_shl, index, 3)), ir.constant(0));
}

// The thread keeps its buffer where the calls before the next tree are of interest.
void end_tree(Lowering& lowering, const Buffer& buffer) {
  ir::Builder& ir = lowering.ir();
  ir.store(8, buffer.address, ir.constant(0), program::kSpanDepth);
  ir.store(8, buffer.address, ir.constant(0), program::kSpanSkipped);
  if (!keeps_before(lowering)) give_back(lowering, buffer);
}

void begin_tree(Lowering& lowering, const Buffer& buffer, ValueId frame) {
  ir::Builder& ir = lowering.ir();
  if (!keeps_before(lowering)) ir.store(8, buffer.address, ir.constant(0), program::kSpanHead);
  const auto copy_word = [&](int64_t from, int64_t to) {
    ir.store(8, buffer.address, ir.load(8, buffer.address, from), to);
  };
  copy_word(program::kSpanHead, program::kSpanBegin);
  copy_word(program::kSpanLast, program::kSpanLastBefore);
  ir.store(8, buffer.address, frame, program::kSpanFrame);
  ir.store(8, buffer.address, ir.constant(0), program::kSpanSkipped);
  ir.store(8, buffer.address, ir.constant(0), program::kSpanLeftOut);
  ir.store(8, buffer.address, ir.constant(1), program::kSpanDepth);
  count_tree(lowering, program::kTreesBegun);
}

// The stack pointer where the kernel's function was called, or the address of the context, which a trampoline has on
// the stack. The verifier must take it for a number, so it makes a detour through memory.
ValueId kernel_frame(Lowering& lowering, ValueId buffer) {
  ir::Builder& ir = lowering.ir();
  if (lowering.unit().context.registers_offset_bytes)
    return lowering.register_value({"", lowering.kernel().arch().stack_pointer_offset, 8});
  ir.store(8, buffer, ir.context(), program::kSpanNow);
  count(lowering, buffer, program::kSpanNow, 0);
  return ir.load(8, buffer, program::kSpanNow);
}

// A call of the root while there is a tree: a call within it, or the next call after one whose return was not seen, as
// it threw an exception, say. That one is above it on the stack, or was at the same place. `begins`: a slot that is
// cleared if it is no new tree.
void note_inner_call(Lowering& lowering, const Buffer& buffer, ir::SlotId begins) {
  ir::Builder& ir = lowering.ir();
  const spec::ProbeContext& context = lowering.unit().context;
  const auto stay = [&](bool counts) {
    if (counts) count(lowering, buffer.address, program::kSpanDepth);
    ir.store(8, ir.slot(begins), ir.constant(0));
  };
  const auto leave = [&] {
    count_tree(lowering, program::kTreesLeft);
    ir.store(8, buffer.address, ir.constant(0), program::kSpanDepth);
  };
  if (context.boundary != CallBoundary::kEntry) return stay(true);
  const bool is_user = context.frame.has_value();
  const ValueId root = ir.load(8, buffer.address, program::kSpanFrame);
  const CallFrame call = is_user ? frame_of(lowering) : CallFrame{kernel_frame(lowering, buffer.address), {}};
  const ValueId distance = ir.binary(Op::k_sub, call.frame, root);
  const ValueId limit = ir.constant(is_user ? kUserStackBytes : kKernelStackBytes);
  const auto by_distance = [&] { lowering.when(Condition::ult, distance, limit, leave, [&] { stay(!is_user); }); };
  if (!is_user) {
    lowering.when(Condition::ne, root, ir.constant(0), by_distance, [&] { stay(true); });
    return;
  }
  // A tail call has its caller's frame, and returns with it: see CallTrees::is_tail_call.
  const int64_t in_page = lowering.program().page_size_bytes - 1;
  const ValueId is_tail = lowering.select(
      Condition::eq, distance, ir.constant(0), [&] { return ir.binary(Op::k_and, call.return_address, in_page); },
      [&] { return ir.constant(1); });
  lowering.when(
      Condition::eq, is_tail, ir.constant(0), [&] { stay(true); }, by_distance);
}

void emit_tree(Lowering& lowering, const Buffer& buffer, source::Span span) {
  ir::Builder& ir = lowering.ir();
  types::Types& types = lowering.types();
  const CurrentTask task = current_task(lowering);
  const auto word = [&](int64_t offset_bytes) {
    return lower::EventArgument{{}, lowering.scalar_operand(types.uint64(), ir.load(8, buffer.address, offset_bytes))};
  };
  const uint32_t size = data_bytes(lowering);
  const ValueId used = bounded(lowering, ir.load(8, buffer.address, program::kSpanHead), size);
  ir.store(4, buffer.address, used, program::kSpanLength);
  const ValueId data = ir.binary(Op::k_add, buffer.address, program::kSpanLength);
  lowering.emit_event(kSpanRelease,
                      {{{}, task.pid},
                       {{}, task.tid},
                       {{}, task.comm},
                       {{}, lowering.scalar_operand(types.int_type(4, false), lowering.cpu())},
                       word(program::kSpanBegin),
                       word(program::kSpanHead),
                       word(program::kSpanLastBefore),
                       word(program::kSpanLeftOut),
                       {{}, {types.buffer(size), data, true}}},
                      span, {}, {size});
  ir.store(8, buffer.address, ir.constant(program::kNoSpanRecord), program::kSpanLast);  // what is shown is not again
}

// The end of the root is kept, also if ends of skipped calls are missing.
void end_skipping(Lowering& lowering, const Buffer& buffer) {
  ir::Builder& ir = lowering.ir();
  const auto end = [&] { ir.store(8, buffer.address, ir.constant(0), program::kSpanSkipped); };
  const auto end_if_equal = [&](int64_t word, ValueId to) {
    lowering.when(Condition::eq, ir.load(8, buffer.address, word), to, end);
  };
  if (lowering.unit().context.frame)
    end_if_equal(program::kSpanFrame, frame_of(lowering).frame);
  else
    end_if_equal(program::kSpanDepth, ir.constant(1));
}

}  // namespace

CallFrame frame_of(Lowering& lowering) {
  ir::Builder& ir = lowering.ir();
  const spec::ProbeContext& context = lowering.unit().context;
  if (!context.frame) return {ir.constant(0), ir.constant(0)};
  const ValueId stack = ir.load(8, ir.context(), context.frame->register_offset_bytes);
  const ValueId frame = ir.binary(Op::k_add, stack, context.frame->displacement);
  if (!context.return_address) return {frame, ir.constant(0)};
  return {frame, lowering.context_field({"", lowering.types().uint64(), *context.return_address}).value};
}

bool holds_spans(Lowering& lowering) {
  const auto holds = [](const check::Unit& unit) {
    return std::ranges::any_of(unit.exprs.ids(), [&](check::ExprId id) {
      const spec::Builtin* builtin = unit.fact(id).builtin;
      return builtin != nullptr && builtin->lower == lower_span_hold;
    });
  };
  return std::ranges::any_of(lowering.checked().units, holds);
}

void keep_span(Lowering& lowering, SpanKind kind, const std::function<void(const lower::SpanBuffer&)>& emit) {
  ir::Builder& ir = lowering.ir();
  const uint32_t size = data_bytes(lowering);
  // Calls leave an eighth for the ends of those that are in progress.
  const bool is_root_exit = kind == SpanKind::kExit && lowering.calls(lower_span_release);
  const uint32_t limit = is_root_exit              ? size
                         : kind == SpanKind::kExit ? size - kRootExitBytes
                                                   : size - size / 8 - kRootExitBytes;
  const auto keep = [&](const Buffer& buffer) {
    const auto leave_out = [&] {
      count(lowering, buffer.address, program::kSpanLeftOut);
      if (kind == SpanKind::kEnter) count(lowering, buffer.address, program::kSpanSkipped);
    };
    const auto write = [&] {
      emit({buffers_map(lowering), buffer.address, size, limit, keeps_before(lowering), leave_out});
    };
    if (is_root_exit) end_skipping(lowering, buffer);
    // Within a call that did not fit, nothing is kept.
    const auto skip = [&] {
      if (kind == SpanKind::kExit)
        count(lowering, buffer.address, program::kSpanSkipped, -1);
      else
        leave_out();
    };
    lowering.when(Condition::ne, ir.load(8, buffer.address, program::kSpanSkipped), ir.constant(0), skip, write);
  };
  BufferFinder(lowering).find(keeps_before(lowering) ? ir.constant(1) : ValueId(), keep, nullptr);
}

Operand lower_span_hold(Lowering& lowering, const spec::CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ValueId condition = call.arguments.empty() ? ir.constant(1) : lowering.scalar(call.arguments[0]);
  const ir::SlotId begins = ir.add_variable("span_hold");
  const ir::SlotId has_begun = ir.add_variable("span_has_begun");
  ir.store(8, ir.slot(begins), condition);
  ir.store(8, ir.slot(has_begun), ir.constant(0));
  const auto begin = [&](const Buffer& buffer) {
    const spec::ProbeContext& context = lowering.unit().context;
    const bool is_kernel_call = !context.frame && context.boundary == CallBoundary::kEntry;
    begin_tree(lowering, buffer, is_kernel_call ? kernel_frame(lowering, buffer.address) : frame_of(lowering).frame);
    ir.store(8, ir.slot(has_begun), ir.constant(1));
  };
  const auto look = [&](const Buffer& buffer) {
    const auto depth = [&] { return ir.load(8, buffer.address, program::kSpanDepth); };
    lowering.when(Condition::ne, depth(), ir.constant(0), [&] { note_inner_call(lowering, buffer, begins); });
    const auto end_if_left = [&] {
      lowering.when(Condition::eq, depth(), ir.constant(0), [&] { end_tree(lowering, buffer); });
    };
    lowering.when(
        Condition::ne, ir.load(8, ir.slot(begins)), ir.constant(0), [&] { begin(buffer); }, end_if_left);
  };
  const auto count_missing = [&] {
    lowering.when(Condition::ne, condition, ir.constant(0), [&] {
      lowering.count_loss(
          program::LossKind::kUpdate,
          fmt::format("tree(s) lost: no memory was free (raise span_hold_threads = {})", thread_count(lowering)));
    });
  };
  BufferFinder(lowering).find(condition, look, count_missing);
  return lowering.scalar_operand(lowering.type(call.expr), ir.load(8, ir.slot(has_begun)));
}

Operand lower_span_release(Lowering& lowering, const spec::CallSite& call) {
  ir::Builder& ir = lowering.ir();
  const ValueId condition = lowering.scalar(call.arguments[0]);
  const ir::SlotId has_ended = ir.add_variable("span_has_ended");
  ir.store(8, ir.slot(has_ended), ir.constant(0));
  const auto end = [&](const Buffer& buffer) {
    const auto show = [&] {
      count_tree(lowering, program::kTreesShown);
      emit_tree(lowering, buffer, call.span);
    };
    const auto drop = [&] { count_tree(lowering, program::kTreesDropped); };
    lowering.when(Condition::ne, condition, ir.constant(0), show, drop);
    end_tree(lowering, buffer);
    ir.store(8, ir.slot(has_ended), ir.constant(1));
  };
  const auto count_down = [&](const Buffer& buffer, ValueId depth) {
    lowering.when(
        Condition::eq, depth, ir.constant(1), [&] { end(buffer); },
        [&] { count(lowering, buffer.address, program::kSpanDepth, -1); });
  };
  const auto look = [&](const Buffer& buffer) {
    const ValueId depth = ir.load(8, buffer.address, program::kSpanDepth);
    lowering.when(Condition::ne, depth, ir.constant(0), [&] {
      const spec::ProbeContext& context = lowering.unit().context;
      if (!context.frame || context.boundary != CallBoundary::kReturn) return count_down(buffer, depth);
      // The returns of calls within the root's are below it on the stack; of one above it, the root has ended.
      const ValueId root = ir.load(8, buffer.address, program::kSpanFrame);
      const ValueId distance = ir.binary(Op::k_sub, frame_of(lowering).frame, root);
      const auto leave_if_above = [&] {
        lowering.when(Condition::ult, distance, ir.constant(kUserStackBytes), [&] {
          count_tree(lowering, program::kTreesLeft);
          end_tree(lowering, buffer);
        });
      };
      lowering.when(
          Condition::eq, distance, ir.constant(0), [&] { count_down(buffer, depth); }, leave_if_above);
    });
  };
  BufferFinder(lowering).find({}, look, nullptr);
  return lowering.scalar_operand(lowering.type(call.expr), ir.load(8, ir.slot(has_ended)));
}

// The buffer is free afterwards.
Operand lower_span_drop(Lowering& lowering, const spec::CallSite&) {
  ir::Builder& ir = lowering.ir();
  const auto drop = [&](const Buffer& buffer) {
    const ValueId depth = ir.load(8, buffer.address, program::kSpanDepth);
    lowering.when(Condition::ne, depth, ir.constant(0), [&] { count_tree(lowering, program::kTreesLeft); });
    ir.store(8, buffer.address, ir.constant(0), program::kSpanDepth);
    give_back(lowering, buffer);
  };
  BufferFinder(lowering).find({}, drop, nullptr);
  return {};
}

// ---- Spans, which begin and end in a thread, instants and counters. Each record has a time, a CPU, a thread and, for
// probes of a function, the frame of the call. output/spans.h builds trees from the records.

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
  if (lowering.config().print.layout != spec::PrintLayout::kC) return false;
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
  const auto size = static_cast<uint32_t>(std::min(lowering.config().limits.max_strlen, kMostBytes));
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

// The records of a thread's buffer (program/layout.h), as it was copied into the record of span_release().
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
  const uint64_t bytes = last.context().config().spans.hold_bytes;
  event.text = fmt::format("{} more did not fit into span_hold_bytes = {}", count, bytes);
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
  auto before = records.before(static_cast<uint64_t>(view.integer(kTreeBefore)), context.config().spans.before);
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
            "tree for each thread, or with `-f trace` as a file for chrome://tracing and Perfetto. Further "
            "values become arguments of the span. Their names come from the script or from a record such as "
            "`(n = arg0)`.",
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
