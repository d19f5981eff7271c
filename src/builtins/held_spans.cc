#include "builtins/held_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "builtins/common.h"
#include "program/span_buffer.h"

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

uint32_t thread_count(Lowering& lowering) { return static_cast<uint32_t>(lowering.config().span_hold_threads); }
uint32_t data_bytes(Lowering& lowering) { return static_cast<uint32_t>(lowering.config().span_hold_bytes); }
bool keeps_before(Lowering& lowering) { return lowering.config().span_before != 0; }

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
      lowering.count_loss(program::LossKind::kUpdate,
                          fmt::format("trees were not kept, as no memory was free (raise span_hold_threads = {})",
                                      thread_count(lowering)));
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

}  // namespace espy::builtins
