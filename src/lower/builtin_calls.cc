#include "lower/builtin_calls.h"

#include <fmt/format.h>

#include "spec/builtin.h"

namespace espy::lower {

bool BuiltinCalls::writes_bytes(ExprId expr) const {
  const check::ExprFact& fact = scope_.fact(expr);
  if (!fact.builtin || !fact.builtin->lower_into || fact.replacement.valid() || fact.function >= 0) return false;
  if (scope_.is_constant(expr)) return false;
  const Kind kind = types()[fact.type].kind;
  return (kind == Kind::kString || kind == Kind::kBuffer) &&
         (ast().get<syntax::Call>(expr) || ast().get<syntax::Name>(expr));
}

ValueId BuiltinCalls::write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes) {
  const auto* call = ast().get<syntax::Call>(expr);
  const spec::CallSite site{expr, ast()[expr].span,
                            call ? std::span<const ExprId>(call->arguments) : std::span<const ExprId>()};
  const source::Span outer = ir().span();
  ir().at(site.span);
  const ValueId length = scope_.fact(expr).builtin->lower_into(lowering_, site, destination, capacity_bytes);
  ir().at(outer);
  return length;
}

void BuiltinCalls::count_truncated(ExprId call, ValueId size_bytes, Condition condition, uint32_t limit) {
  if (call.valid() && may_truncate_.contains(call.index)) return;
  when(condition, size_bytes, ir().constant(limit), [&] {
    count_loss(
        program::LossKind::kString,
        fmt::format("strings did not fit max_strlen = {}: keys, comparisons and lengths have their beginning only "
                    "(raise it)",
                    config().max_strlen));
  });
}

Operand BuiltinCalls::call(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments) {
  const spec::CallSite site{expr, ast()[expr].span, arguments};
  if (builtin.lower) return builtin.lower(lowering_, site);
  return builtin.lower_into ? call_into_memory(site, builtin) : Operand{};
}

Operand BuiltinCalls::call_into_memory(const spec::CallSite& site, const spec::Builtin& builtin) {
  const TypeId result = scope_.type(site.expr);
  const types::Type layout = types()[result];
  const ValueId address = memory_.allocate(layout.size_bytes, spec::name_of(builtin));
  memory_.zero(address, layout.size_bytes);
  const bool is_buffer = layout.kind == Kind::kBuffer;
  const ValueId length = builtin.lower_into(lowering_, site, offset(address, is_buffer ? 4 : 0), layout.count);
  if (is_buffer) ir().store(4, address, length);
  return {result, address, true, AddressSpace::kBpf, length};
}

void BuiltinCalls::update(ExprId call, const spec::Builtin& builtin, ValueId address, bool is_atomic) {
  const spec::CallSite site{call, ast()[call].span, ast().get<syntax::Call>(call)->arguments};
  builtin.lower_update(lowering_, site, address, is_atomic);
}

}  // namespace espy::lower
