#include "check/casts.h"

#include <optional>

#include "check/fold_constants.h"
#include "check/type_rules.h"

namespace espy::check {

using types::Kind;

namespace {

// Kinds whose values are numbers that are printed in another form.
bool is_number_like(Kind kind) {
  return kind == Kind::kKernelSymbol || kind == Kind::kUserSymbol || kind == Kind::kUsername ||
         kind == Kind::kTimestamp || kind == Kind::kCgroupPath;
}

bool can_cast(const types::Type& from, const types::Type& to) {
  const bool from_scalar = is_int_like(from) || from.kind == Kind::kPointer;
  const bool to_scalar = is_int_like(to) || to.kind == Kind::kPointer;
  if (from_scalar && (to_scalar || is_number_like(to.kind))) return true;
  if (is_number_like(from.kind) && to.kind == Kind::kInt) return true;
  if (from.kind == Kind::kPointer && (to.kind == Kind::kString || to.kind == Kind::kBuffer)) return true;
  if (is_int_like(from) && to.kind == Kind::kArray) return true;
  if (from.kind == Kind::kArray && (to_scalar || to.kind == Kind::kArray)) return true;
  if (from.kind == Kind::kString && (to.kind == Kind::kArray || to.kind == Kind::kString || to.kind == Kind::kBuffer))
    return true;
  if (from.kind == Kind::kBuffer && (to.kind == Kind::kBuffer || to.kind == Kind::kString || to.kind == Kind::kArray))
    return true;
  return from.kind == to.kind && types::is_struct_like(from) && from.members.size() == to.members.size();
}

// The address space of what lies behind a pointer: `p->member[i].other`, `*p`; nullopt for what does not.
std::optional<types::AddressSpace> space_behind_pointer(const Facts& facts, ExprId id) {
  for (;;) {
    ExprId base;
    const auto* unary = facts.ast().get<syntax::Unary>(id);
    if (const auto* access = facts.ast().get<syntax::Access>(id)) base = access->base;
    if (const auto* index = facts.ast().get<syntax::Index>(id)) base = index->base;
    if (unary && unary->op == syntax::UnaryOp::kDereference) base = unary->operand;
    if (!base || !facts.type(base)) return std::nullopt;
    const types::Type& type = facts.type_of(facts.type(base));
    if (type.kind == Kind::kPointer) return type.space;
    id = base;
  }
}

}  // namespace

TypeId Casts::cast(ExprId id, const syntax::Cast& node) {
  expressions_.value(node.operand);
  TypeId to = type_names_.type(node.type);
  expressions_.read_aggregation(node.operand);
  const TypeId from = facts_.type(node.operand);
  if (!to || !from) return to;
  const types::Type source_type = facts_.type_of(from);
  const types::Type target = facts_.type_of(to);
  // `(int8[])e` takes as many elements as `e` has bytes.
  if (target.kind == Kind::kArray && target.count == 0 && facts_.type_of(target.element).size_bytes > 0)
    to = facts_.types().array(target.element, source_type.size_bytes / facts_.type_of(target.element).size_bytes);
  // As in C, an array stands for its address.
  const bool is_array = source_type.kind == Kind::kArray || source_type.kind == Kind::kString;
  const auto space =
      is_array && target.kind == Kind::kPointer ? space_behind_pointer(facts_, node.operand) : std::nullopt;
  if (space) return facts_.types().pointer(target.element, *space);
  if (!can_cast(source_type, target)) {
    reporter_.error("bad-cast", facts_.span(id), facts_.show(from) + " cannot be cast to " + facts_.show(to));
    return {};
  }
  // A length that the script gives is no loss.
  const bool is_read = source_type.kind == Kind::kPointer && target.count == config_.max_strlen;
  const bool was_cut = source_type.may_be_cut && source_type.count == target.count;
  if (target.kind == Kind::kString && (is_read || was_cut)) to = facts_.types().string(target.count, true);
  if (from == to && !facts_.fact(node.operand).is_reduced && !facts_.is_constant(node.operand))
    reporter_.warning("useless-cast", facts_.span(id), "this is " + facts_.show(to) + " already");
  if (target.kind == Kind::kPointer && source_type.kind == Kind::kPointer && source_type.space != target.space)
    to = facts_.types().pointer(target.element, source_type.space);
  if (is_int_like(target) && facts_.integer(node.operand))
    facts_.fact(id).constant = truncate(target, *facts_.integer(node.operand));
  return to;
}

}  // namespace espy::check
