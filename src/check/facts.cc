#include "check/facts.h"

#include "check/type_rules.h"

namespace espy::check {

using namespace syntax;

void Facts::enter_unit(size_t index) {
  unit_ = &checked_.units[index];
  unit_index_ = index;
}

const program::Probe& Facts::first_probe() const {
  static const program::Probe nothing;
  return unit().probes.empty() ? nothing : checked_.probes[unit().probes.front()];
}

std::optional<Number> Facts::number(ExprId id) const {
  const auto known = integer(id);
  if (!known || !type(id)) return std::nullopt;
  const types::Type& t = type_of(type(id));
  return Number{*known, !t.is_signed && *known < 0};
}

bool Facts::is_literal(ExprId id) const {
  if (!is_constant(id) || !type(id)) return false;
  const auto known = number(id);
  if (!known || type_of(type(id)).kind != types::Kind::kInt) return true;
  return type(id) == (known->is_unsigned ? types_.uint64() : smallest_signed(types_, known->bits));
}

bool Facts::is_number_literal(ExprId id) const {
  return is_literal(id) && type_of(type(id)).kind == types::Kind::kInt && !has_cast(id);
}

std::pair<std::string, std::string> Facts::show_both(TypeId a, TypeId b) const {
  const auto with_origin = [&](TypeId id) {
    const std::string text = show(id);
    for (id = known(id); type_of(id).element.valid(); id = type_of(id).element) {
    }
    const types::Type& type = type_of(id);
    const std::string program(types_.origin_name(type.origin));
    if (type.kind != types::Kind::kStruct && type.kind != types::Kind::kEnum) return text;
    return text + " of " + (!program.empty() ? program : type.origin.btf_id == 0 ? "the script" : "the kernel");
  };
  if (show(a) != show(b)) return {show(a), show(b)};
  return {with_origin(a), with_origin(b)};
}

bool Facts::has_cast(ExprId id) const {
  if (const auto* unary = ast().get<Unary>(id)) return has_cast(unary->operand);
  if (const auto* binary = ast().get<Binary>(id)) return has_cast(binary->left) || has_cast(binary->right);
  if (const auto* choice = ast().get<Ternary>(id))
    return has_cast(choice->then_value.valid() ? choice->then_value : choice->condition) ||
           has_cast(choice->else_value);
  if (const auto* comptime = ast().get<Comptime>(id)) return has_cast(comptime->operand);
  return ast().get<Cast>(id) != nullptr;
}

TypeId Facts::set_number(ExprId id, Number value) {
  fact(id).constant = value.bits;
  if (value.is_unsigned) return literal_type(types_, value.as_unsigned());
  return smallest_signed(types_, value.bits);
}

TypeId Facts::set_text(ExprId id, std::string text) {
  const auto capacity = static_cast<uint32_t>(text.size() + 1);
  fact(id).constant = std::move(text);
  return types_.string(capacity);
}

}  // namespace espy::check
