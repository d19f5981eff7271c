#include "lower/tuples.h"

#include <algorithm>

#include "lower/expressions.h"
#include "program/probe_names.h"

namespace espy::lower {

Operand Tuples::make(TypeId type, const std::vector<ExprId>& elements) {
  const types::Type layout = types()[type];
  const ValueId address = memory_.allocate(layout.size_bytes, "tuple");
  memory_.zero(address, layout.size_bytes);
  for (size_t i = 0; i < elements.size(); ++i) {
    const types::Member& member = layout.members[i];
    store_member(address, member.offset_bytes(), elements[i], member.type);
  }
  return {type, address, true};
}

Operand Tuples::context_record(TypeId type, std::string_view name) {
  const types::Type record = types()[type];
  const ValueId address = memory_.allocate(record.size_bytes, name);
  memory_.zero(address, record.size_bytes);
  const spec::ProbeContext& context = scope_.unit().context;
  for (const spec::ContextField& field : name == "args" ? context.args : context.locals) {
    if (!field.unreadable.empty()) continue;
    const auto member = std::ranges::find(record.members, field.name, &types::Member::name);
    if (member == record.members.end()) continue;
    const ValueId destination = offset(address, member->offset_bytes());
    const Operand value = fields_.read(field);
    const types::Type& from = types()[field.type];
    const types::Type& to = types()[member->type];
    if (to.kind == Kind::kString && from.kind == Kind::kPointer)  // shown as text
      reads_.read_string(destination, to.count, value.value, from.space, false);
    else
      conversions_.store_converted(destination, value, member->type);
  }
  return {type, address, true};
}

void Tuples::store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to) {
  const ValueId address = offset(zeroed, offset_bytes);
  const Kind kind = types()[to].kind;
  const auto known = program::is_probe_name(kind) ? scope_.text(expr) : std::nullopt;
  if (known) {
    ir().store(8, address, ir().constant(program::first_named(kind, *known, module_.program.probes)));
  } else if (kind == Kind::kString && offset_bytes % 8 == 0 && scope_.type(expr) == to &&
             builtins_.writes_bytes(expr)) {
    builtins_.write_bytes(expr, address, types()[to].count);
  } else {
    conversions_.store_converted(address, expressions_.value(expr), to);
  }
}

}  // namespace espy::lower
