#include "lower/record_writer.h"

#include <algorithm>

#include "program/ring.h"
#include "program/span_buffer.h"

namespace espy::lower {
namespace {

constexpr uint32_t kHeaderBytes = sizeof(program::RecordHeader);
constexpr int kReserveTries = 4;
constexpr int kSpanReserveTries = 2;

}  // namespace

// Returns the size of the fixed part. A field in the tail has its offset and length there, 4 bytes each.
uint32_t RecordWriter::lay_out(program::EventSchema& schema) {
  uint32_t size = kHeaderBytes;
  for (program::EventField& field : schema.fields) {
    const types::Type& type = types()[field.type];
    const uint32_t align =
        field.is_in_tail ? 4 : std::min(8u, std::max(type.align_bytes, type.size_bytes >= 8 ? 8u : 1u));
    size = static_cast<uint32_t>(round_up(size, align));
    field.offset_bytes = size;
    size += field.is_in_tail ? 8 : type.size_bytes;
  }
  return static_cast<uint32_t>(round_up(size, 8));
}

// Adds the schema to the program.
RecordWriter::Record RecordWriter::lay_out_record(program::EventSchema schema, uint32_t tail_bytes) {
  schema.program = functions_.program();
  const uint32_t fixed_bytes = schema.size_bytes = lay_out(schema);
  Record out{.size_bytes = fixed_bytes + tail_bytes, .fixed_bytes = ir().constant(fixed_bytes)};
  out.event = module_.program.events.add(std::move(schema));
  out.done = ir().add_block("emitted");
  return out;
}

RecordWriter::Record RecordWriter::begin(program::EventSchema schema, uint32_t tail_bytes) {
  Record out = lay_out_record(std::move(schema), tail_bytes);
  module_.longest_record_bytes = std::max(module_.longest_record_bytes, out.size_bytes);
  out.base = ring_base(out.done);
  out.head = reserve(out.base, out.size_bytes, out.done);
  const ValueId position = ir().binary(Op::k_and, out.head, module_.program.ring_bytes - 8);
  out.address =
      ir().binary(Op::k_add, offset(out.base, program::ring_data_offset(module_.program.page_size_bytes)), position);
  ir().store(8, out.address, take_sequence(), 8);
  return out;
}

RecordWriter::Record RecordWriter::begin_in(const SpanBuffer& buffer, program::EventSchema schema,
                                            uint32_t tail_bytes) {
  Record out = lay_out_record(std::move(schema), tail_bytes);
  program::BpfMap& map = module_.program.maps[buffer.map];
  const uint32_t end_bytes = program::kSpanHeaderBytes + buffer.data_bytes + out.size_bytes;
  map.value_size = std::max(map.value_size, static_cast<uint32_t>(round_up(end_bytes, 8)));
  out.base = buffer.address;
  out.head = reserve_in(buffer, out.size_bytes, out.done);
  out.address = data_at(buffer, out.head);
  if (!buffer.wraps) return out;
  ir().store(8, out.address, ir().load(8, out.base, program::kSpanLast), 8);
  ir().store(8, out.base, out.head, program::kSpanLast);
  return out;
}

// The unused part of the tail is given back, unless an interrupt has reserved a record after this one.
void RecordWriter::finish(const Record& record, ValueId end, bool has_tail) {
  ValueId written = ir().constant(record.size_bytes);
  if (has_tail) {
    const ValueId reserved = ir().binary(Op::k_add, record.head, record.size_bytes);
    const ValueId used = ir().binary(Op::k_add, record.head, end);
    const ValueId seen = exchange_head(record.base, reserved, used);
    written = select(
        Condition::eq, seen, reserved, [&] { return end; }, [&] { return ir().constant(record.size_bytes); });
  }
  ir().store(4, record.address, written, 4);
  ir().store_release(4, record.address, ir().constant(int64_t{record.event.index} + 1));
  ir().jump(record.done);
  ir().enter(record.done);
}

// The counter is the next sequence, for user space, or with times at least nearly so: CPUs may store them in either
// order.
ValueId RecordWriter::take_sequence() {
  const ValueId counter = ir().map_value(module_.program.globals, module_.program.sequence_offset);
  if (module_.kernel.has(kernel::Feature::kAtomicFetch))
    return ir().atomic(Op::k_atomic_fetch_add, 8, counter, {ir().constant(1)});
  const ValueId now = ir().call(Helper::ktime_get_ns, {});
  ir().store(8, counter, ir().binary(Op::k_add, now, 1));
  return now;
}

// Sets the head to `next` if it is `old`. Returns the head before, or another value than `old` if this run has
// interrupted one that is here.
ValueId RecordWriter::exchange_head(ValueId base, ValueId old, ValueId next) {
  if (module_.kernel.has(kernel::Feature::kAtomicFetch))
    return ir().atomic(Op::k_atomic_cmpxchg, 8, base, {old, next}, program::kRingHeadOffset);
  ir().atomic_add(8, base, ir().constant(1), program::kRingGuardOffset);
  const ValueId depth = ir().load(8, base, program::kRingGuardOffset);
  const ValueId seen = select(
      Condition::eq, depth, ir().constant(1), [&] { return ir().load(8, base, program::kRingHeadOffset); },
      [&] { return ir().unary(Op::k_not, old); });
  when(Condition::eq, seen, old, [&] { ir().store(8, base, next, program::kRingHeadOffset); });
  ir().atomic_add(8, base, ir().constant(-1), program::kRingGuardOffset);
  return seen;
}

// The address of this CPU's ring.
ValueId RecordWriter::ring_base(BlockId otherwise) {
  const ValueId key = memory_.allocate(8, "cpu");
  ir().store(4, key, cpu());
  const ValueId base = ir().call(Helper::map_lookup_elem, {ir().map(module_.ring_map()), key});
  const BlockId found = ir().add_block("ring");
  ir().branch(Condition::ne, base, 0, found, otherwise);
  ir().enter(found);
  return base;
}

// Advances the ring's head by a compare-and-exchange, which an interrupt may make fail, a few times at most. Returns
// the head before.
ValueId RecordWriter::reserve(ValueId base, uint32_t size_bytes, BlockId otherwise) {
  const BlockId got = ir().add_block("reserved");
  const ValueId head = ir().add_block_parameter(got);
  const BlockId lost = ir().add_block("lost");
  for (int i = 0; i < kReserveTries; ++i) {
    const ValueId old = ir().load(8, base, program::kRingHeadOffset);
    const ValueId tail = ir().load(8, base, program::kRingTailOffset);
    const ValueId next = ir().binary(Op::k_add, old, size_bytes);
    const ValueId used = ir().binary(Op::k_sub, next, tail);
    const BlockId fits = ir().add_block("fits");
    const BlockId taken = ir().add_block("taken");
    const BlockId retry = ir().add_block("retry");
    ir().branch(Condition::ugt, used, module_.program.ring_bytes, lost, fits);
    ir().enter(fits);
    const ValueId seen = exchange_head(base, old, next);
    ir().branch(Condition::eq, seen, old, taken, retry);
    ir().enter(taken);
    ir().jump(got, {old});
    ir().enter(retry);
  }
  ir().jump(lost);
  ir().enter(lost);
  ir().atomic_add(8, base, ir().constant(1), program::kRingLostOffset);
  if (config().counts_losses) count_loss(program::LossKind::kRecord, "");
  ir().jump(otherwise);
  ir().enter(got);
  return head;
}

// The same in a thread's memory, where only an interrupt may come in between. Returns the position of the record.
ValueId RecordWriter::reserve_in(const SpanBuffer& buffer, uint32_t size_bytes, BlockId otherwise) {
  const BlockId got = ir().add_block("reserved");
  const ValueId start = ir().add_block_parameter(got);
  const BlockId full = ir().add_block("full");
  for (int i = 0; i < kSpanReserveTries; ++i) {
    const ValueId old = ir().load(8, buffer.address, program::kSpanHead);
    const ValueId begin = buffer.wraps ? begin_in_ring(buffer, old, size_bytes) : old;
    const ValueId next = ir().binary(Op::k_add, begin, size_bytes);
    const ValueId used = buffer.wraps ? used_by_tree(buffer, begin, next) : next;
    const BlockId fits = ir().add_block("fits");
    const BlockId taken = ir().add_block("taken");
    const BlockId retry = ir().add_block("retry");
    ir().branch(Condition::ugt, used, buffer.limit_bytes, full, fits);
    ir().enter(fits);
    const ValueId seen = ir().atomic(Op::k_atomic_cmpxchg, 8, buffer.address, {old, next}, program::kSpanHead);
    ir().branch(Condition::eq, seen, old, taken, retry);
    ir().enter(taken);
    if (buffer.wraps) when(Condition::ne, begin, old, [&] { ir().store(8, data_at(buffer, old), ir().constant(0)); });
    ir().jump(got, {begin});
    ir().enter(retry);
  }
  ir().jump(full);
  ir().enter(full);
  buffer.if_full();
  ir().jump(otherwise);
  ir().enter(got);
  return start;
}

ValueId RecordWriter::data_at(const SpanBuffer& buffer, ValueId position) {
  const ValueId at = ir().binary(Op::k_and, position, buffer.data_bytes - 8);
  return ir().binary(Op::k_add, offset(buffer.address, program::kSpanHeaderBytes), at);
}

// Where a record begins: the start of the ring if what is left before its end is too short.
ValueId RecordWriter::begin_in_ring(const SpanBuffer& buffer, ValueId head, uint32_t size_bytes) {
  const ValueId at = ir().binary(Op::k_and, head, buffer.data_bytes - 8);
  const ValueId rest = ir().binary(Op::k_sub, ir().constant(buffer.data_bytes), at);
  return select(
      Condition::ult, rest, ir().constant(size_bytes), [&] { return ir().binary(Op::k_add, head, rest); },
      [&] { return head; });
}

// Outside of a tree, old records are overwritten.
ValueId RecordWriter::used_by_tree(const SpanBuffer& buffer, ValueId begin, ValueId next) {
  const ValueId from = select(
      Condition::ne, ir().load(8, buffer.address, program::kSpanDepth), ir().constant(0),
      [&] { return ir().load(8, buffer.address, program::kSpanBegin); }, [&] { return begin; });
  return ir().binary(Op::k_sub, next, from);
}

}  // namespace espy::lower
