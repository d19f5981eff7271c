#include "check/expressions.h"

#include "check/binary_operators.h"
#include "check/blocks.h"
#include "check/calls.h"
#include "check/casts.h"
#include "check/constants.h"
#include "check/context_fields.h"
#include "check/map_expressions.h"
#include "check/members.h"
#include "check/names.h"
#include "check/type_rules.h"
#include "check/unary_operators.h"
#include "check/variables.h"

namespace espy::check {

using types::Kind;
using namespace syntax;

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

TypeId Expressions::dispatch(ExprId id) {
  if (const auto recorded = parts_.context_fields.recorded(id)) return *recorded;
  const ExpressionParts& to = parts_;
  return std::visit(Overloaded{
                        [&](const ErrorExpr&) { return TypeId{}; },
                        [&](const IntegerLiteral& node) { return to.constants.integer(id, node); },
                        [&](const BoolLiteral& node) { return to.constants.boolean(id, node); },
                        [&](const StringLiteral& node) { return to.constants.string(id, node); },
                        [&](const Name& node) { return to.names.name(id, node); },
                        [&](const syntax::Variable& node) { return to.variables.read(id, node); },
                        [&](const Map& node) { return to.maps.scalar(id, node); },
                        [&](const Positional& node) { return to.constants.positional(id, node); },
                        [&](const PositionalCount&) { return to.constants.positional_count(id); },
                        [&](const Index& node) {
                          return to.maps.is_element(node) ? to.maps.element(id, node) : to.members.index(id, node);
                        },
                        [&](const Call& node) { return to.calls.call(id, node); },
                        [&](const TypeExpr& node) { return to.constants.type_expression(node); },
                        [&](const Sizeof& node) { return to.constants.size(id, node); },
                        [&](const Offsetof& node) { return to.constants.offset(id, node); },
                        [&](const Typeinfo&) { return TypeId(); },  // expand_macros() leaves none without a member
                        [&](const Comptime& node) { return to.constants.comptime(id, node); },
                        [&](const Unary& node) { return to.unary_operators.unary(id, node); },
                        [&](const Binary& node) { return to.binary_operators.binary(id, node); },
                        [&](const Ternary& node) { return to.blocks.ternary(id, node); },
                        [&](const Access& node) { return to.members.access(id, node); },
                        [&](const TupleAccess& node) { return to.members.tuple_access(id, node); },
                        [&](const Cast& node) { return to.casts.cast(id, node); },
                        [&](const Tuple& node) { return to.members.tuple(node); },
                        [&](const syntax::Record& node) { return to.members.record(id, node); },
                        [&](const Block& node) { return to.blocks.block(id, node); },
                        [&](const If& node) { return to.blocks.branch(id, node); },
                    },
                    facts_.ast()[id].node);
}

TypeId Expressions::expr(ExprId id) {
  if (!id) return {};
  ExprFact& out = facts_.fact(id);
  if (++depth_ > kMaxDepth) {
    reporter_.error("too-deep", facts_.span(id), "this is nested too deeply");
    --depth_;
    return {};
  }
  out.constant = {};
  out.is_reduced = false;
  const TypeId found = dispatch(id);
  --depth_;
  // A changed type needs no further round by itself: it follows from those of variables and maps.
  return facts_.fact(id).type = found;
}

TypeId Expressions::value(ExprId id) {
  const TypeId found = expr(id);
  if (found && facts_.type_of(found).kind == Kind::kVoid) {
    // A map that is never assigned has no type; it reads as 0.
    if (facts_.fact(id).map.valid()) return facts_.fact(id).type = facts_.types().int64();
    reporter_.error("no-value", facts_.span(id), "this has no value");
    return facts_.fact(id).type = {};
  }
  return found;
}

TypeId Expressions::read_value(ExprId id, bool is_printed) {
  value(id);
  read_aggregation(id, is_printed);
  return facts_.type(id);
}

void Expressions::read_aggregation(ExprId id, bool is_printed) {
  if (!id) return;
  ExprFact& out = facts_.fact(id);
  if (out.builtin && out.builtin->kind == spec::BuiltinKind::kAggregation) {
    reporter_.error("aggregation-not-assigned", facts_.span(id), "an aggregation can only be assigned to a map");
    out.type = {};
    return;
  }
  if (!out.type || !out.map.valid() || !types::is_aggregation(facts_.type_of(out.type))) return;
  const TypeId number_type = reduced_type(facts_.types(), out.type);
  if (!number_type && !is_printed) {
    const bool is_recent = facts_.type_of(out.type).kind == Kind::kRecent;
    reporter_.error("not-a-number", facts_.span(id),
                    is_recent ? "this holds the last values of `recent`: only `print`, `len` and `for` take them"
                              : facts_.show(out.type) + " is not one number: only `print` takes it");
    out.type = {};
    return;
  }
  out.is_reduced = facts_.type_of(out.type).kind != Kind::kRecent;
  if (number_type) out.type = number_type;
}

TypeId Expressions::number(ExprId id) {
  const TypeId found = read_value(id);
  if (found && !is_int_like(facts_.type_of(found)))
    reporter_.error("not-a-number", facts_.span(id), "this must be an integer, not " + facts_.show(found));
  return found;
}

void Expressions::condition(ExprId id) {
  const TypeId found = read_value(id);
  if (found && !is_truthy(facts_.type_of(found)))
    reporter_.error("not-a-condition", facts_.span(id),
                    "a condition must be an integer, a pointer or a string, not " + facts_.show(found));
}

}  // namespace espy::check
