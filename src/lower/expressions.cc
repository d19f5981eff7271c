#include "lower/expressions.h"

#include <algorithm>

#include "lower/access.h"
#include "lower/branches.h"
#include "lower/builtin_calls.h"
#include "lower/function_calls.h"
#include "lower/maps.h"
#include "lower/operators.h"
#include "lower/overloaded.h"
#include "lower/statements.h"
#include "lower/tuples.h"

namespace espy::lower {

void Expressions::with_scalar(ExprId expr, const std::function<void()>& body) {
  scalars_[expr] = scalar(expr);
  body();
  scalars_.erase(expr);
}

ValueId Expressions::scalar(ExprId expr) {
  if (const auto known = scalars_.find(expr); known != scalars_.end()) return known->second;
  const Operand operand = value(expr);
  if (!operand.value.valid()) return ir().constant(0);
  if (operand.is_address && types::is_aggregation(types()[operand.type]))
    return conversions_.reduce(operand, types().int64()).value;
  if (operand.is_address && operand.type.valid() && types()[operand.type].size_bytes <= 8)
    return conversions_.convert(operand, types().int64()).value;
  return operand.value;
}

Operand Expressions::constant_value(TypeId type, const check::Constant& constant) {
  if (const auto* number = std::get_if<int64_t>(&constant))
    return conversions_.convert({types().int64(), ir().constant(*number)}, type);
  const std::string& text = std::get<std::string>(constant);
  const uint32_t capacity = std::max(types()[type].size_bytes, 1u);
  std::string bytes = text.substr(0, capacity);
  bytes.resize(round_up(capacity, 8));
  const auto length = static_cast<int64_t>(std::min<size_t>(text.size(), capacity - 1));
  return {type, memory_.constant_bytes(bytes), true, AddressSpace::kBpf, ir().constant(length)};
}

Operand Expressions::value(ExprId expr) {
  const check::ExprFact& fact = scope_.fact(expr);
  const source::Span outer = ir().span();
  ir().at(ast()[expr].span);
  const bool is_constant = scope_.is_constant(expr) && fact.type.valid();
  Operand out = is_constant ? constant_value(fact.type, fact.constant) : value_of_node(expr);
  if (fact.is_reduced && out.type.valid() && types::is_aggregation(types()[out.type]))
    out = conversions_.reduce(out, types::is_aggregation(types()[fact.type]) ? types().int64() : fact.type);
  ir().at(outer);
  return out;
}

Operand Expressions::value_of_node(ExprId expr) {
  const check::ExprFact& fact = scope_.fact(expr);
  if (fact.replacement.valid()) return conversions_.convert(value(fact.replacement), fact.type);
  const auto element = [&] { return maps_.read(maps_.element(expr)); };
  return std::visit(
      Overloaded{
          [&](const syntax::Name& node) { return name(expr, node); },
          [&](const syntax::Variable&) { return variables_.read(fact.variable); },
          [&](const syntax::Map&) { return element(); },
          [&](const syntax::Index& node) { return fact.map.valid() ? element() : access_.index(expr, node); },
          [&](const syntax::Call& node) { return call(expr, node); },
          [&](const syntax::Comptime& node) { return value(node.operand); },
          [&](const syntax::Unary& node) { return operators_.unary(expr, node); },
          [&](const syntax::Binary& node) { return operators_.binary(expr, node); },
          [&](const syntax::Ternary& node) { return branches_.ternary(expr, node); },
          [&](const syntax::Access& node) { return access_.member(expr, node); },
          [&](const syntax::TupleAccess& node) { return access_.tuple_member(expr, node); },
          [&](const syntax::Cast& node) { return operators_.cast(expr, node); },
          [&](const syntax::Tuple& node) { return tuples_.make(fact.type, node.elements); },
          [&](const syntax::Record& node) { return tuples_.make(fact.type, node.values); },
          [&](const syntax::Block& node) { return block_value(expr, node); },
          [&](const syntax::If& node) { return branches_.if_value(expr, node); },
          [&](const syntax::IntegerLiteral& node) -> Operand {
            return {fact.type, ir().constant(static_cast<int64_t>(node.value))};
          },
          [&](const syntax::BoolLiteral& node) -> Operand {
            return {fact.type, ir().constant(node.value)};
          },
          [&](const syntax::StringLiteral& node) { return constant_value(fact.type, node.value); },
          [&](const auto&) -> Operand { return {}; },  // types, and nodes that the checker folds
      },
      ast()[expr].node);
}

Operand Expressions::block_value(ExprId expr, const syntax::Block& node) {
  statements_.lower(node.statements);
  if (!node.value.valid()) return {};
  const Operand out = value(node.value);
  return scope_.type(expr).valid() && out.type.valid() ? conversions_.convert(out, scope_.type(expr)) : out;
}

Operand Expressions::name(ExprId expr, const syntax::Name& node) {
  const check::ExprFact& fact = scope_.fact(expr);
  return fact.builtin ? builtins_.call(expr, *fact.builtin, {}) : context_name(fact, node.name);
}

Operand Expressions::call(ExprId expr, const syntax::Call& node) {
  const check::ExprFact& fact = scope_.fact(expr);
  if (fact.function >= 0) return function_calls_.call(expr, node);
  return fact.builtin ? builtins_.call(expr, *fact.builtin, node.arguments) : context_name(fact, node.name);
}

// `args` and `locals` alone are records; any other name is a field.
Operand Expressions::context_name(const check::ExprFact& fact, std::string_view name) {
  if (fact.field) return fields_.read(*fact.field);
  if ((name != "args" && name != "locals") || !fact.type.valid()) return {};
  return tuples_.context_record(fact.type, name);
}

}  // namespace espy::lower
