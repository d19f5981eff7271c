#include "lower/events.h"

#include "lower/expressions.h"

namespace espy::lower {
namespace {

constexpr uint32_t kInlineBytes = 64;  // longer strings and buffers go to the tail

}  // namespace

void Events::evaluate(const EventArgument& argument, PlannedField& planned) {
  if (!argument.expr.valid()) {
    planned.operand = argument.operand;
    return;
  }
  builtins_.allow_truncation(argument.expr);  // user space marks it
  if (!builtins_.writes_bytes(argument.expr)) {
    planned.operand = expressions_.value(argument.expr);
  } else if (reads_.may_sleep_here()) {
    planned.operand = write_early(argument.expr);
  } else {
    planned.expr = argument.expr;
  }
}

Events::PlannedField Events::plan(const EventArgument& argument) {
  PlannedField planned;
  evaluate(argument, planned);
  planned.field.type = planned.expr.valid() ? scope_.type(planned.expr) : planned.operand.type;
  if (!planned.field.type.valid()) {
    planned.operand = {types().int64(), ir().constant(0)};
    planned.field.type = planned.operand.type;
  }
  if (reads_.may_sleep_here() && planned.operand.space == AddressSpace::kUser)
    planned.operand = conversions_.in_our_memory(planned.operand);
  const types::Type& type = types()[planned.field.type];
  const bool has_text = type.kind == Kind::kString || type.kind == Kind::kBuffer;
  planned.field.is_in_tail = has_text && type.size_bytes > kInlineBytes;
  return planned;
}

// The string or buffer of `expr` in our memory. The bytes after a long string's end are not used, except under
// lockdown, where all of it is copied.
Operand Events::write_early(ExprId expr) {
  const TypeId result = scope_.type(expr);
  const types::Type layout = types()[result];
  const bool is_buffer = layout.kind == Kind::kBuffer;
  const ValueId address = memory_.allocate(layout.size_bytes, "text");
  if (layout.size_bytes <= kInlineBytes || !memory_.may_copy_from_kernel()) memory_.zero(address, layout.size_bytes);
  const ValueId length = builtins_.write_bytes(expr, offset(address, is_buffer ? 4 : 0), layout.count);
  if (is_buffer) ir().store(4, address, length);
  return {result, address, true, AddressSpace::kBpf, length};
}

// The smaller of `value` and `limit`, in a form that the verifier understands. A negative value is a large unsigned
// one.
ValueId Events::bounded(ValueId value, uint32_t limit) {
  const ir::SlotId slot = new_slot("bounded");
  when(
      Condition::ule, value, ir().constant(limit), [&] { write_slot(slot, value); },
      [&] { write_slot(slot, ir().constant(limit)); });
  return read_slot(slot);
}

void Events::write_field(const PlannedField& planned, ValueId destination) {
  if (!planned.expr.valid()) return conversions_.store(destination, planned.operand);
  const types::Type type = types()[planned.field.type];
  const bool is_buffer = type.kind == Kind::kBuffer;
  const ValueId length = builtins_.write_bytes(planned.expr, offset(destination, is_buffer ? 4 : 0), type.count);
  if (is_buffer) ir().store(4, destination, length);
}

// Writes the bytes of a string or buffer, without its length. Returns the length.
ValueId Events::write_tail(const PlannedField& planned, ValueId destination) {
  const types::Type type = types()[planned.field.type];
  const Operand& operand = planned.operand;
  const uint32_t limit = type.kind == Kind::kString ? types::capacity_with_nul(type) - 1 : type.count;
  if (planned.expr.valid()) return bounded(builtins_.write_bytes(planned.expr, destination, type.count), limit);
  if (type.kind == Kind::kString)
    return bounded(reads_.read_text(destination, operand.type, operand.value, operand.space, false), limit);
  const Operand whole = conversions_.in_our_memory(operand);
  const ValueId size = bounded(ir().load(4, whole.value), limit);
  reads_.read_dynamic(destination, size, limit, offset(whole.value, 4), AddressSpace::kBpf);
  return size;
}

void Events::emit(program::EventSchema schema, const std::vector<EventArgument>& arguments, const SpanBuffer* buffer) {
  std::vector<PlannedField> fields;
  for (const EventArgument& argument : arguments) fields.push_back(plan(argument));
  uint32_t tail_bytes = 0;
  for (const PlannedField& planned : fields) {
    if (planned.field.is_in_tail) tail_bytes += static_cast<uint32_t>(round_up(types()[planned.field.type].count, 8));
    schema.fields.push_back(planned.field);
  }
  const RecordWriter::Record record =
      buffer ? writer_.begin_in(*buffer, std::move(schema), tail_bytes) : writer_.begin(std::move(schema), tail_bytes);
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
  writer_.finish(record, cursor, tail_bytes > 0);
}

}  // namespace espy::lower
