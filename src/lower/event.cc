// Records for user space. program/ring.h says how a record is reserved and completed; this writes the instructions.
//
// Scalars are evaluated before the reservation, so that nothing that a script can write stands between it and the
// completion, but the reads of strings: those go straight into the record. Where a read may sleep it comes before the
// reservation, too, as what is reserved holds up all that comes behind it. A string or buffer that may be long lies in
// the record's tail, behind the fixed part, and takes there only what it needs: the record is reserved with room for
// all, and shrunk at the end if nothing was reserved behind it meanwhile (nothing but an interrupt can). What a shorter
// value leaves in the tail is zeros, as the ring demands of memory that is not yet reserved.
#include <algorithm>

#include "lower/unit.h"
#include "program/ring.h"

namespace espy::lower {
namespace {

constexpr uint32_t kInlineBytes = 64;  // longer strings and buffers go to the tail
constexpr uint32_t kHeaderBytes = sizeof(program::RecordHeader);
constexpr int kReserveTries = 4;

bool reads_memory(Helper helper) {
  constexpr Helper kReads[] = {Helper::probe_read_kernel, Helper::probe_read_kernel_str, Helper::probe_read_user,
                               Helper::probe_read_user_str, Helper::copy_from_user};
  return std::ranges::find(kReads, helper) != std::end(kReads);
}

}  // namespace

UnitLowering::PlannedField UnitLowering::plan_field(const EventArgument& argument) {
  PlannedField planned;
  if (argument.expr.valid()) {
    if (may_sleep_here() && writes_bytes(argument.expr)) {
      planned.operand = written_before(argument.expr);
      planned.field.type = planned.operand.type;
    } else if (writes_bytes(argument.expr)) {
      planned.expr = argument.expr;
      planned.field.type = type(argument.expr);
    } else {
      planned.operand = value(argument.expr);
      planned.field.type = planned.operand.type;
    }
  } else {
    planned.operand = argument.operand;
    planned.field.type = planned.operand.type;
  }
  if (!planned.field.type.valid()) {
    planned.operand = {types().int64(), ir().constant(0)};
    planned.field.type = planned.operand.type;
  }
  if (may_sleep_here() && planned.operand.space == AddressSpace::kUser)
    planned.operand = in_our_memory(planned.operand);
  const types::Type& type = types()[planned.field.type];
  const bool has_text = type.kind == Kind::kString || type.kind == Kind::kBuffer;
  planned.field.is_in_tail = has_text && type.size_bytes > kInlineBytes;
  if (planned.field.is_in_tail) planned.tail_bytes = static_cast<uint32_t>(round_up(type.count, 8));
  planned.has_prefix = type.kind == Kind::kBuffer && !planned.expr.valid();
  return planned;
}

// The text of `str(p)` and its like, in our memory. What is behind a long one's end is not looked at, but under
// lockdown, where it is copied whole.
Operand UnitLowering::written_before(ExprId expr) {
  const TypeId result = type(expr);
  const types::Type layout = types()[result];
  const bool is_buffer = layout.kind == Kind::kBuffer;
  const ValueId address = memory(layout.size_bytes, "text");
  if (layout.size_bytes <= kInlineBytes || !may_copy_from_kernel()) zero(address, layout.size_bytes);
  const ValueId length = write_bytes(expr, offset(address, is_buffer ? 4 : 0), layout.count);
  if (is_buffer) ir().store(4, address, length);
  return {result, address, true, AddressSpace::kBpf, length};
}

ValueId UnitLowering::ring_base(BlockId without) {
  const ValueId key = memory(8, "cpu");
  ir().store(4, key, cpu());
  const ValueId base = ir().call(Helper::map_lookup_elem, {ir().map(module_.ring_map()), key});
  const BlockId found = ir().add_block("ring");
  ir().branch(Condition::ne, base, 0, found, without);
  ir().enter(found);
  return base;
}

// Gives the head before: where the record begins, in bytes ever reserved.
ValueId UnitLowering::reserve(ValueId base, uint32_t size_bytes, BlockId without) {
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
    const ValueId seen = ir().atomic(Op::k_atomic_cmpxchg, 8, base, {old, next}, program::kRingHeadOffset);
    ir().branch(Condition::eq, seen, old, taken, retry);
    ir().enter(taken);
    ir().jump(got, {old});
    ir().enter(retry);
  }
  ir().jump(lost);
  ir().enter(lost);
  ir().atomic_add(8, base, ir().constant(1), program::kRingLostOffset);
  if (config().counts_losses) count_loss(program::LossKind::kRecord, "");
  ir().jump(without);
  ir().enter(got);
  return head;
}

// At most `limit`, so that the verifier sees it; what is negative as a number is far above it.
ValueId UnitLowering::bounded(ValueId value, uint32_t limit) {
  const ir::SlotId slot = new_slot("bounded");
  when(
      Condition::ule, value, ir().constant(limit), [&] { write_slot(slot, value); },
      [&] { write_slot(slot, ir().constant(limit)); });
  return read_slot(slot);
}

// Writes a string or buffer at the cursor; gives the bytes that count.
ValueId UnitLowering::write_tail(const PlannedField& planned, ValueId record, ValueId cursor) {
  const types::Type type = types()[planned.field.type];
  const ValueId destination = ir().binary(Op::k_add, record, cursor);
  const uint32_t limit = type.kind == Kind::kString ? type.count - 1 : type.count;
  if (planned.expr.valid()) {
    return bounded(write_bytes(planned.expr, destination, type.count), limit);
  }
  if (type.kind == Kind::kString)
    return bounded(read_string(destination, type.count, planned.operand.value, planned.operand.space, false), limit);
  const Operand whole = in_our_memory(planned.operand);
  const ValueId size = bounded(ir().load(4, whole.value), limit);
  read_dynamic(destination, size, limit, offset(whole.value, 4), AddressSpace::kBpf);
  return size;
}

void UnitLowering::emit_failure(Helper helper, ValueId result) {
  if (!config().warn_helper_errors) return;
  emit_event("", {{{}, {types().int64(), result}}}, ir().span(), {std::string(ir::info(helper).name)}, {}, {});
}

void UnitLowering::report_failure(Helper helper, ValueId result) {
  const bool is_counted = config().counts_losses && reads_memory(helper);
  if (!config().warn_helper_errors && !is_counted) return;
  when(Condition::slt, result, ir().constant(0), [&] {
    emit_failure(helper, result);
    if (is_counted) count_loss(program::LossKind::kRead, "reads of memory that was not there gave zeros");
  });
}

void UnitLowering::emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                              std::vector<std::string> literals, std::vector<int64_t> numbers, ScriptMapId map) {
  std::vector<PlannedField> fields;
  for (const EventArgument& argument : arguments) fields.push_back(plan_field(argument));
  uint32_t fixed = kHeaderBytes;
  uint32_t tail = 0;
  program::EventSchema schema{.builtin = std::string(builtin),
                              .literals = std::move(literals),
                              .numbers = std::move(numbers),
                              .map = map,
                              .span = span,
                              .program = into_.program};
  for (PlannedField& planned : fields) {
    const types::Type& type = types()[planned.field.type];
    const uint32_t align =
        planned.field.is_in_tail ? 4 : std::min(8u, std::max(type.align_bytes, type.size_bytes >= 8 ? 8u : 1u));
    fixed = static_cast<uint32_t>(round_up(fixed, align));
    planned.field.offset_bytes = fixed;
    fixed += planned.field.is_in_tail ? 8 : type.size_bytes;
    tail += planned.tail_bytes;
    schema.fields.push_back(planned.field);
  }
  fixed = static_cast<uint32_t>(round_up(fixed, 8));
  schema.size_bytes = fixed;
  const uint32_t size = fixed + tail;
  module_.longest_record_bytes = std::max(module_.longest_record_bytes, size);
  const program::EventId event = module_.program.events.add(std::move(schema));

  const BlockId done = ir().add_block("emitted");
  const ValueId base = ring_base(done);
  const ValueId head = reserve(base, size, done);
  const ValueId place = ir().binary(Op::k_and, head, module_.program.ring_bytes - 8);
  const ValueId record =
      ir().binary(Op::k_add, offset(base, program::ring_data_offset(module_.program.page_size_bytes)), place);
  const ValueId counter = ir().map_value(module_.program.globals, module_.program.sequence_offset);
  ir().store(8, record, ir().atomic(Op::k_atomic_fetch_add, 8, counter, {ir().constant(1)}), 8);

  ValueId cursor = ir().constant(fixed);
  for (const PlannedField& planned : fields) {
    const ValueId at = offset(record, planned.field.offset_bytes);
    if (planned.field.is_in_tail) {
      const ValueId length = write_tail(planned, record, cursor);
      ir().store(4, record, cursor, planned.field.offset_bytes);
      ir().store(4, record, length, planned.field.offset_bytes + 4);
      const ValueId padded = ir().binary(Op::k_and, ir().binary(Op::k_add, length, 7), ~int64_t{7});
      cursor = ir().binary(Op::k_add, cursor, padded);
    } else if (planned.expr.valid()) {
      const types::Type type = types()[planned.field.type];
      const bool is_buffer = type.kind == Kind::kBuffer;
      const ValueId length = write_bytes(planned.expr, offset(at, is_buffer ? 4 : 0), type.count);
      if (is_buffer) ir().store(4, at, length);
    } else {
      store(at, planned.operand);
    }
  }
  ValueId written = ir().constant(size);
  if (tail > 0) {
    // Gives back what the tail did not need; if something came behind, it is kept.
    const ValueId end = ir().binary(Op::k_add, head, size);
    const ValueId wanted = ir().binary(Op::k_add, head, cursor);
    const ValueId seen = ir().atomic(Op::k_atomic_cmpxchg, 8, base, {end, wanted}, program::kRingHeadOffset);
    written = select(
        Condition::eq, seen, end, [&] { return cursor; }, [&] { return ir().constant(size); });
  }
  ir().store(4, record, written, 4);
  ir().store_release(4, record, ir().constant(int64_t{event.index} + 1));
  ir().jump(done);
  ir().enter(done);
}

}  // namespace espy::lower
