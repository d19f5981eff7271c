#include "lower/function_calls.h"

#include <algorithm>

#include "lower/expressions.h"
#include "lower/shared_variables.h"
#include "lower/statements.h"

namespace espy::lower {
namespace {

// Of functions that call functions. The checker rejects recursion, so this is only a safeguard.
constexpr size_t kMaxDepth = 16;

}  // namespace

const check::Unit* FunctionCalls::find_callee(ExprId call) const {
  const syntax::Function* function = &ast().functions[static_cast<size_t>(scope_.fact(call).function)];
  const auto found = std::ranges::find(module_.checked.units, function, &check::Unit::function);
  return found == module_.checked.units.end() ? nullptr : &*found;
}

Operand FunctionCalls::call(ExprId expr, const syntax::Call& node) {
  const check::Unit* found = find_callee(expr);
  if (!found || depth_ >= kMaxDepth) return {};
  std::vector<Operand> arguments;
  for (const ExprId each : node.arguments) arguments.push_back(expressions_.value(each));
  check::Unit callee = *found;
  callee.context = scope_.unit().context;
  callee.probes = scope_.unit().probes;
  ++depth_;
  const Operand out = inline_body(callee, arguments);
  --depth_;
  return out;
}

Operand FunctionCalls::inline_body(const check::Unit& callee, const std::vector<Operand>& arguments) {
  Activation activation{.unit = &callee,
                        .shared_variables = find_shared_variables(ast(), callee),
                        .return_block = ir().add_block("returned"),
                        .result = new_slot("result")};
  Operand out;
  scope_.with(activation, [&] {
    init_result(activation);
    for (size_t i = 0; i < arguments.size() && i < callee.parameters.size(); ++i)
      variables_.write(callee.parameters[i], arguments[i]);
    statements_.discard(callee.function->body);
    ir().jump(activation.return_block);
    ir().enter(activation.return_block);
    out = result(activation);
  });
  return out;
}

// The result of a path without `return` is zero.
void FunctionCalls::init_result(Activation& activation) {
  const TypeId type = activation.unit->result;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return;
  const bool may_return_from_callback = !activation.shared_variables.empty();
  if (may_return_from_callback) activation.result_offset = frame_.add_word();
  const ValueId zero =
      is_scalar(type) ? ir().constant(0) : memory_.zeros(static_cast<uint32_t>(round_up(types()[type].size_bytes, 8)));
  if (may_return_from_callback) {
    ir().store(8, frame_.address(), zero, activation.result_offset);
  } else {
    write_slot(activation.result, zero);
  }
}

Operand FunctionCalls::result(const Activation& activation) {
  const TypeId type = activation.unit->result;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return {};
  const ValueId value = activation.result_offset != 0 ? ir().load(8, frame_.address(), activation.result_offset)
                                                      : read_slot(activation.result);
  return {type, value, !is_scalar(type)};
}

}  // namespace espy::lower
