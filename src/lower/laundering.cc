#include "lower/laundering.h"

#include <algorithm>

namespace espy::lower {

bool Laundering::has_many_branches() {
  constexpr ptrdiff_t kMany = 64;
  const auto [known, is_new] = has_many_.try_emplace(&scope_.unit(), false);
  if (is_new) {
    const auto is_if = [&](ExprId id) { return id.index < ast().exprs.size() && ast().get<syntax::If>(id) != nullptr; };
    known->second = std::ranges::count_if(scope_.unit().exprs.ids(), is_if) >= kMany;
  }
  return known->second;
}

// The verifier tracks the value of a number that is stored to the stack as a whole. Writing one of its bytes again
// leaves it with a number of unknown value.
ValueId Laundering::launder(ValueId value) {
  ir::SlotId& slot = slots_[functions_.current()];
  if (!slot.valid()) slot = ir().add_slot(8, 8, "hidden");
  const ValueId address = ir().slot(slot);
  ir().store(8, address, value);
  ir().store(1, address, value);
  return ir().load(8, address);
}

ValueId Laundering::opaque_copy(ValueId number) {
  return is_in_converging_loop() || has_many_branches() ? ir().unary(Op::k_opaque, number) : number;
}

Operand Laundering::opaque_copy(Operand operand) {
  const types::Type& type = types()[operand.type];
  if (types::is_integer(type) && type.kind != Kind::kBool) operand.value = opaque_copy(operand.value);
  return operand;
}

}  // namespace espy::lower
