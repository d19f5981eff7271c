// Records for user space.
//
// Scalars are evaluated before the record is reserved, so that no code of the script runs between the reservation and
// the completion; only strings are read straight into the record. If a read may sleep, it also comes before the
// reservation, since a reserved record delays all that follow it.
//
// A string or buffer that may be long is in the record's tail, after the fixed part, and takes only the space that it
// needs there: the record is reserved for the largest, and the rest given back (finish_record).
#include <algorithm>
#include <cerrno>

#include "lower/lowering.h"
#include "program/layout.h"

namespace espy::lower {
namespace {

constexpr uint32_t kInlineBytes = 64;  // longer strings and buffers go to the tail
constexpr uint32_t kHeaderBytes = sizeof(program::RecordHeader);
constexpr int kReserveTries = 4;
constexpr int kSpanReserveTries = 2;

bool reads_memory(Helper helper) {
  constexpr Helper kReads[] = {Helper::probe_read_kernel, Helper::probe_read_kernel_str, Helper::probe_read_user,
                               Helper::probe_read_user_str, Helper::copy_from_user};
  return std::ranges::find(kReads, helper) != std::end(kReads);
}

}  // namespace

// ---- Events

void Lowering::emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                          std::vector<std::string> literals, std::vector<int64_t> numbers, ScriptMapId map,
                          const SpanBuffer* buffer) {
  program::EventSchema schema{.builtin = std::string(builtin),
                              .literals = std::move(literals),
                              .numbers = std::move(numbers),
                              .map = map,
                              .span = span};
  std::vector<PlannedField> fields;
  for (const EventArgument& argument : arguments) fields.push_back(plan_field(argument));
  uint32_t tail_bytes = 0;
  for (const PlannedField& planned : fields) {
    if (planned.field.is_in_tail) tail_bytes += round_up(types()[planned.field.type].count, 8);
    schema.fields.push_back(planned.field);
  }
  const Record record =
      buffer ? begin_record_in(*buffer, std::move(schema), tail_bytes) : begin_record(std::move(schema), tail_bytes);
  ValueId cursor = record.fixed_bytes;
  for (size_t i = 0; i < fields.size(); ++i) {
    const uint32_t at = module_.program.events[record.event].fields[i].offset_bytes;
    const ValueId destination = offset(record.address, at);
    if (!fields[i].field.is_in_tail) {
      write_field(fields[i], destination);
      continue;
    }
    const ValueId length = write_tail(fields[i], ir().binary(Op::k_add, record.address, cursor));
    ir().store(4, record.address, cursor, at);
    ir().store(4, record.address, length, at + 4);
    const ValueId padded = ir().binary(Op::k_and, ir().binary(Op::k_add, length, 7), ~int64_t{7});
    cursor = ir().binary(Op::k_add, cursor, padded);
  }
  finish_record(record, cursor, tail_bytes > 0);
}

Lowering::PlannedField Lowering::plan_field(const EventArgument& argument) {
  PlannedField planned;
  evaluate_argument(argument, planned);
  planned.field.type = planned.expr.valid() ? type(planned.expr) : planned.operand.type;
  if (!planned.field.type.valid()) {
    planned.operand = {types().int64(), ir().constant(0)};
    planned.field.type = planned.operand.type;
  }
  if (may_sleep_here() && planned.operand.space == AddressSpace::kUser)
    planned.operand = in_our_memory(planned.operand);
  const types::Type& type = types()[planned.field.type];
  const bool has_text = type.kind == Kind::kString || type.kind == Kind::kBuffer;
  planned.field.is_in_tail = has_text && type.size_bytes > kInlineBytes;
  return planned;
}

void Lowering::evaluate_argument(const EventArgument& argument, PlannedField& planned) {
  if (!argument.expr.valid()) {
    planned.operand = argument.operand;
    return;
  }
  allow_truncation(argument.expr);  // user space marks it
  if (!writes_bytes(argument.expr)) {
    planned.operand = value(argument.expr);
  } else if (may_sleep_here()) {
    planned.operand = write_early(argument.expr);
  } else {
    planned.expr = argument.expr;
  }
}

// The string or buffer of `expr` in our memory. The bytes after a long string's end are not used, except under
// lockdown, where all of it is copied.
Operand Lowering::write_early(ExprId expr) {
  const TypeId result = type(expr);
  const uint32_t size_bytes = types()[result].size_bytes;
  const ValueId address = memory(size_bytes, "text");
  if (size_bytes <= kInlineBytes || !may_copy_from_kernel()) zero(address, size_bytes);
  const ValueId length = write_whole(expr, address);
  return {result, address, true, AddressSpace::kBpf, length};
}

// The smaller of `value` and `limit`, in a form that the verifier understands. A negative value is a large unsigned
// one.
ValueId Lowering::bounded(ValueId value, uint32_t limit) {
  const ir::SlotId slot = new_slot("bounded");
  when(
      Condition::ule, value, ir().constant(limit), [&] { write_slot(slot, value); },
      [&] { write_slot(slot, ir().constant(limit)); });
  return read_slot(slot);
}

void Lowering::write_field(const PlannedField& planned, ValueId destination) {
  if (!planned.expr.valid()) return store(destination, planned.operand);
  write_whole(planned.expr, destination);
}

// Writes the bytes of a string or buffer, without its length. Returns the length.
ValueId Lowering::write_tail(const PlannedField& planned, ValueId destination) {
  const types::Type type = types()[planned.field.type];
  const Operand& operand = planned.operand;
  const uint32_t limit = type.kind == Kind::kString ? types::capacity_with_nul(type) - 1 : type.count;
  if (planned.expr.valid()) return bounded(write_bytes(planned.expr, destination, type.count), limit);
  if (type.kind == Kind::kString) return bounded(read_text(destination, operand, false), limit);
  const Operand whole = in_our_memory(operand);
  const ValueId size = bounded(ir().load(4, whole.value), limit);
  read_dynamic(destination, size, limit, offset(whole.value, 4), AddressSpace::kBpf);
  return size;
}

// ---- Records, by the protocol of program/layout.h

// Returns the size of the fixed part. A field in the tail has its offset and length there, 4 bytes each.
uint32_t Lowering::lay_out_fields(program::EventSchema& schema) {
  uint32_t size = kHeaderBytes;
  for (program::EventField& field : schema.fields) {
    const types::Type& type = types()[field.type];
    const uint32_t align =
        field.is_in_tail ? 4 : std::min(8u, std::max(type.align_bytes, type.size_bytes >= 8 ? 8u : 1u));
    size = round_up(size, align);
    field.offset_bytes = size;
    size += field.is_in_tail ? 8 : type.size_bytes;
  }
  return round_up(size, 8);
}

// Adds the schema to the program.
Lowering::Record Lowering::lay_out_record(program::EventSchema schema, uint32_t tail_bytes) {
  schema.program = functions_.program();
  const uint32_t fixed_bytes = schema.size_bytes = lay_out_fields(schema);
  Record out{.size_bytes = fixed_bytes + tail_bytes, .fixed_bytes = ir().constant(fixed_bytes)};
  out.event = module_.program.events.add(std::move(schema));
  out.done = ir().add_block("emitted");
  return out;
}

Lowering::Record Lowering::begin_record(program::EventSchema schema, uint32_t tail_bytes) {
  Record out = lay_out_record(std::move(schema), tail_bytes);
  module_.longest_record_bytes = std::max(module_.longest_record_bytes, out.size_bytes);
  out.base = ring_base(out.done);
  out.head = reserve_in_ring(out.base, out.size_bytes, out.done);
  const ValueId position = ir().binary(Op::k_and, out.head, module_.program.ring_bytes - 8);
  out.address =
      ir().binary(Op::k_add, offset(out.base, program::ring_data_offset(module_.program.page_size_bytes)), position);
  ir().store(8, out.address, take_sequence(), 8);
  return out;
}

Lowering::Record Lowering::begin_record_in(const SpanBuffer& buffer, program::EventSchema schema, uint32_t tail_bytes) {
  Record out = lay_out_record(std::move(schema), tail_bytes);
  program::BpfMap& map = module_.program.maps[buffer.map];
  const uint32_t end_bytes = program::kSpanHeaderBytes + buffer.data_bytes + out.size_bytes;
  map.value_size = std::max(map.value_size, round_up(end_bytes, 8));
  out.base = buffer.address;
  out.head = reserve_in_buffer(buffer, out.size_bytes, out.done);
  out.address = buffer_data_at(buffer, out.head);
  if (!buffer.wraps) return out;
  ir().store(8, out.address, ir().load(8, out.base, program::kSpanLast), 8);
  ir().store(8, out.base, out.head, program::kSpanLast);
  return out;
}

// The unused part of the tail is given back, unless an interrupt has reserved a record after this one.
void Lowering::finish_record(const Record& record, ValueId end, bool has_tail) {
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
ValueId Lowering::take_sequence() {
  const ValueId counter = ir().map_value(module_.program.globals, module_.program.sequence_offset);
  if (kernel().has(kernel::Feature::kAtomicFetch))
    return ir().atomic(Op::k_atomic_fetch_add, 8, counter, {ir().constant(1)});
  const ValueId now = ir().call(Helper::ktime_get_ns, {});
  ir().store(8, counter, ir().binary(Op::k_add, now, 1));
  return now;
}

// Sets the head to `next` if it is `old`. Returns the head before, or another value than `old` if this run has
// interrupted one that is here.
ValueId Lowering::exchange_head(ValueId base, ValueId old, ValueId next) {
  if (kernel().has(kernel::Feature::kAtomicFetch))
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
ValueId Lowering::ring_base(BlockId otherwise) {
  const ValueId key = memory(8, "cpu");
  ir().store(4, key, cpu());
  const ValueId base = ir().call(Helper::map_lookup_elem, {ir().map(module_.ring_map()), key});
  const BlockId found = ir().add_block("ring");
  ir().branch(Condition::ne, base, 0, found, otherwise);
  ir().enter(found);
  return base;
}

// Advances the ring's head by a compare-and-exchange, which an interrupt may make fail, a few times at most. Returns
// the head before.
ValueId Lowering::reserve_in_ring(ValueId base, uint32_t size_bytes, BlockId otherwise) {
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
  if (config().counting.losses) count_loss(program::LossKind::kRecord, "");
  ir().jump(otherwise);
  ir().enter(got);
  return head;
}

// The same in a thread's memory, where only an interrupt may come in between. Returns the position of the record.
ValueId Lowering::reserve_in_buffer(const SpanBuffer& buffer, uint32_t size_bytes, BlockId otherwise) {
  const BlockId got = ir().add_block("reserved");
  const ValueId start = ir().add_block_parameter(got);
  const BlockId full = ir().add_block("full");
  for (int i = 0; i < kSpanReserveTries; ++i) {
    const ValueId old = ir().load(8, buffer.address, program::kSpanHead);
    const ValueId begin = buffer.wraps ? next_fit_in_buffer(buffer, old, size_bytes) : old;
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
    if (buffer.wraps)
      when(Condition::ne, begin, old, [&] { ir().store(8, buffer_data_at(buffer, old), ir().constant(0)); });
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

ValueId Lowering::buffer_data_at(const SpanBuffer& buffer, ValueId position) {
  const ValueId at = ir().binary(Op::k_and, position, buffer.data_bytes - 8);
  return ir().binary(Op::k_add, offset(buffer.address, program::kSpanHeaderBytes), at);
}

// Where a record begins: the start of the ring if what is left before its end is too short.
ValueId Lowering::next_fit_in_buffer(const SpanBuffer& buffer, ValueId head, uint32_t size_bytes) {
  const ValueId at = ir().binary(Op::k_and, head, buffer.data_bytes - 8);
  const ValueId rest = ir().binary(Op::k_sub, ir().constant(buffer.data_bytes), at);
  return select(
      Condition::ult, rest, ir().constant(size_bytes), [&] { return ir().binary(Op::k_add, head, rest); },
      [&] { return head; });
}

// Outside of a tree, old records are overwritten.
ValueId Lowering::used_by_tree(const SpanBuffer& buffer, ValueId begin, ValueId next) {
  const ValueId from = select(
      Condition::ne, ir().load(8, buffer.address, program::kSpanDepth), ir().constant(0),
      [&] { return ir().load(8, buffer.address, program::kSpanBegin); }, [&] { return begin; });
  return ir().binary(Op::k_sub, next, from);
}

// ---- Failures of helpers: as a record under -k, in a loss counter where losses are counted (-v, --strict)

void Lowering::report_failure(Helper helper, ValueId result) {
  const bool is_counted = reads_memory(helper);  // costs a comparison, and more only when it fails
  if (!config().warn_helper_errors && !is_counted) return;
  when(Condition::slt, result, ir().constant(0), [&] {
    emit_failure(helper, result);
    if (is_counted) count_loss(program::LossKind::kRead, "memory read(s) failed and returned 0");
  });
}

void Lowering::emit_failure(Helper helper, ValueId result) {
  if (config().warn_helper_errors) write_failure(helper, result);
}

void Lowering::report_absent_key(bool is_statement) {
  const ValueId result = ir().constant(-ENOENT);
  if (config().warn_helper_errors) return write_failure(Helper::map_delete_elem, result);
  if (!is_statement || !config().warns) return;
  const ValueId is_said = ir().map_value(module_.program.globals, module_.add_global(8, 8));
  when(Condition::eq, ir().load(8, is_said), ir().constant(0), [&] {
    ir().store(8, is_said, ir().constant(1));
    write_failure(Helper::map_delete_elem, result);
  });
}

void Lowering::write_failure(Helper helper, ValueId result) {
  program::EventSchema schema{.literals = {std::string(ir::info(helper).name)}, .span = ir().span()};
  schema.fields.push_back({.type = types().int64()});
  const Record record = begin_record(std::move(schema), 0);
  const uint32_t at = module_.program.events[record.event].fields.front().offset_bytes;
  ir().store(8, offset(record.address, at), result);
  finish_record(record, record.fixed_bytes, false);
}

}  // namespace espy::lower
