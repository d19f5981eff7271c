#include "lower/recents.h"

#include "lower/expressions.h"
#include "program/layout.h"
#include "program/probe_names.h"

namespace espy::lower {
namespace {

constexpr auto kBusy = static_cast<int64_t>(program::kRecentBusy);

// The parts of a tuple or record; null for other expressions.
const std::vector<ExprId>* parts_of(const syntax::Ast& ast, ExprId expr) {
  if (const auto* tuple = ast.get<syntax::Tuple>(expr)) return &tuple->elements;
  const auto* record = ast.get<syntax::Record>(expr);
  return record ? &record->values : nullptr;
}

}  // namespace

void Recents::add(const Element& element, ExprId value) {
  const program::ScriptMap map = module_.script_map(element.map);
  const std::vector<Part> parts = plan(types()[map.value].element, value);
  elements_.with_new_value(element, [&](ValueId ring) { add_to(ring, map, parts); });
}

// Evaluates what is not written in place, so that a slot is busy for a short time.
std::vector<Recents::Part> Recents::plan(TypeId type, ExprId value) {
  const std::vector<ExprId>* exprs = parts_of(ast(), value);
  if (!exprs || scope_.type(value) != type) return {plan_part(0, type, value)};
  const types::Type layout = types()[type];
  std::vector<Part> out;
  for (size_t i = 0; i < exprs->size() && i < layout.members.size(); ++i)
    out.push_back(plan_part(layout.members[i].offset_bytes(), layout.members[i].type, (*exprs)[i]));
  return out;
}

Recents::Part Recents::plan_part(uint32_t offset_bytes, TypeId type, ExprId expr) {
  Part part{offset_bytes, type, expr, {}};
  if (is_written_in_place(part)) return part;
  part.expr = {};
  part.operand = expressions_.value(expr);
  if (reads_.may_sleep_here() && part.operand.space == AddressSpace::kUser)
    part.operand = conversions_.in_our_memory(part.operand);
  return part;
}

// As Tuples::store_member() does: names of probes, and strings that their builtin writes.
bool Recents::is_written_in_place(const Part& part) {
  const Kind kind = types()[part.type].kind;
  if (program::is_probe_name(kind)) return scope_.text(part.expr).has_value();
  return kind == Kind::kString && part.offset_bytes % 8 == 0 && scope_.type(part.expr) == part.type &&
         builtins_.writes_bytes(part.expr) && !reads_.may_sleep_here();
}

void Recents::write(ValueId address, TypeId type, const std::vector<Part>& parts) {
  if (!is_scalar(type)) memory_.zero(address, types()[type].size_bytes);
  for (const Part& part : parts) {
    if (part.expr.valid())
      tuples_.store_member(address, part.offset_bytes, part.expr, part.type);
    else
      conversions_.store_converted(offset(address, part.offset_bytes), part.operand, part.type);
  }
}

// Only a thread that was interrupted here for as long as it takes to fill the ring meets a newer stamp.
void Recents::add_to(ValueId ring, const program::ScriptMap& map, const std::vector<Part>& parts) {
  const types::Type type = types()[map.value];
  const types::RecentLayout layout(type.count, types()[type.element].size_bytes);
  const BlockId free = ir().add_block("free");
  const BlockId own = ir().add_block("own");
  const BlockId lost = ir().add_block("busy");
  const BlockId done = ir().add_block("added");
  const ValueId number = ir().atomic(Op::k_atomic_fetch_add, 8, ring, {ir().constant(1)});
  const ValueId slot = ir().binary(Op::k_and, number, layout.slots - 1);
  const ValueId stamps = offset(ring, types::RecentLayout::kStampsOffset);
  const ValueId stamp_address = ir().binary(Op::k_add, stamps, ir().binary(Op::k_shl, slot, 3));
  const ValueId stamp = map.map.valid() ? ir().binary(Op::k_add, number, 1) : ir().call(Helper::ktime_get_ns, {});
  const ValueId old = ir().load(8, stamp_address);
  ir().branch(Condition::ugt, old, stamp, lost, free);
  ir().enter(free);
  const ValueId seen = ir().atomic(Op::k_atomic_cmpxchg, 8, stamp_address, {old, ir().constant(kBusy)});
  ir().branch(Condition::eq, seen, old, own, lost);
  ir().enter(own);
  const ValueId distance = ir().binary(Op::k_mul, slot, ir().constant(layout.stride_bytes));
  write(ir().binary(Op::k_add, offset(ring, layout.values_offset), distance), type.element, parts);
  ir().store_release(8, stamp_address, stamp);
  ir().jump(done);
  ir().enter(lost);
  count_loss(program::LossKind::kUpdate,
             map.name + ": values that came while the ones before them were still being written; updates lost");
  ir().jump(done);
  ir().enter(done);
}

ValueId Recents::kept_count(const Element& element) {
  const program::ScriptMap map = module_.script_map(element.map);
  const ir::SlotId sum = new_slot("kept");
  write_slot(sum, ir().constant(0));
  const auto at_most = [&](ValueId taken) {
    const ValueId count = ir().constant(types()[map.value].count);
    return select(
        Condition::ult, taken, count, [&] { return taken; }, [&] { return count; });
  };
  if (map.map.valid()) {
    elements_.with_value(
        element, [&](ValueId ring) { write_slot(sum, ir().load(8, ring)); }, nullptr);
  } else {
    ir().count_up(module_.program.cpu_count, [&](ValueId cpu, BlockId) {
      const ValueId taken = ir().load(8, elements_.assigned_word(map, cpu), 8);
      write_slot(sum, ir().binary(Op::k_add, read_slot(sum), taken));
    });
  }
  return at_most(read_slot(sum));
}

}  // namespace espy::lower
