// Expressions: what a node's value is; blocks, conditions, calls, tuples.
#include <algorithm>

#include "lower/unit.h"
#include "program/probe_names.h"

namespace espy::lower {
namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

constexpr size_t kDeepestCall = 16;  // of functions that call functions

}  // namespace

ValueId UnitLowering::scalar(ExprId expr) {
  Operand operand = value(expr);
  if (!operand.value.valid()) return ir().constant(0);
  if (operand.is_address && types::is_aggregation(types()[operand.type])) return reduce(operand, types().int64()).value;
  if (operand.is_address && operand.type.valid() && types()[operand.type].size_bytes <= 8)
    return convert(operand, types().int64()).value;
  return operand.value;
}

Operand UnitLowering::constant_value(TypeId type, const check::Constant& constant) {
  if (const auto* number = std::get_if<int64_t>(&constant))
    return convert({types().int64(), ir().constant(*number)}, type);
  const std::string& text = std::get<std::string>(constant);
  const uint32_t capacity = std::max(types()[type].size_bytes, 1u);
  std::string bytes = text.substr(0, capacity);
  bytes.resize(round_up(capacity, 8));
  const auto length = static_cast<int64_t>(std::min<size_t>(text.size(), capacity - 1));
  return {type, constant_bytes(bytes), true, AddressSpace::kBpf, ir().constant(length)};
}

Operand UnitLowering::value(ExprId expr) {
  const check::ExprFact& fact = unit_->fact(expr);
  const source::Span outer = ir().span();
  ir().at(ast()[expr].span);
  Operand out = std::holds_alternative<std::monostate>(fact.constant) || !fact.type.valid()
                    ? value_of_node(expr)
                    : constant_value(fact.type, fact.constant);
  if (unit_->fact(expr).is_reduced && out.type.valid() && types::is_aggregation(types()[out.type]))
    out = reduce(out, types::is_aggregation(types()[fact.type]) ? types().int64() : fact.type);
  ir().at(outer);
  return out;
}

Operand UnitLowering::value_of_node(ExprId expr) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (fact.replacement.valid()) return convert(value(fact.replacement), fact.type);
  return std::visit(Overloaded{
                        [&](const syntax::Name& node) {
                          return fact.builtin ? call_builtin(expr, *fact.builtin, {}) : context_name(expr, node.name);
                        },
                        [&](const syntax::Variable&) { return read_variable(fact.variable); },
                        [&](const syntax::Map&) { return read_element(element(expr), expr); },
                        [&](const syntax::Index& node) {
                          return fact.map.valid() ? read_element(element(expr), expr) : index(expr, node);
                        },
                        [&](const syntax::Call& node) { return call(expr, node); },
                        [&](const syntax::Comptime& node) { return value(node.operand); },
                        [&](const syntax::Unary& node) { return unary(expr, node); },
                        [&](const syntax::Binary& node) { return binary(expr, node); },
                        [&](const syntax::Ternary& node) { return ternary(expr, node); },
                        [&](const syntax::Access& node) { return member(expr, node); },
                        [&](const syntax::TupleAccess& node) { return tuple_member(expr, node); },
                        [&](const syntax::Cast& node) { return cast(expr, node); },
                        [&](const syntax::Tuple& node) { return make_tuple(expr, node.elements); },
                        [&](const syntax::Record& node) { return make_tuple(expr, node.values); },
                        [&](const syntax::Block& node) { return block_value(expr, node); },
                        [&](const syntax::If& node) { return if_value(expr, node); },
                        [&](const syntax::IntegerLiteral& node) -> Operand {
                          return {fact.type, ir().constant(static_cast<int64_t>(node.value))};
                        },
                        [&](const syntax::BoolLiteral& node) -> Operand {
                          return {fact.type, ir().constant(node.value)};
                        },
                        [&](const syntax::StringLiteral& node) { return constant_value(fact.type, node.value); },
                        [&](const auto&) -> Operand { return {}; },  // types, and what the checker folds
                    },
                    ast()[expr].node);
}

// ---- Conditions

ValueId UnitLowering::truth(Operand operand) {
  if (!operand.value.valid()) return ir().constant(0);
  if (!operand.is_address) return operand.value;
  operand = in_our_memory(operand);
  if (types::is_aggregation(types()[operand.type])) return reduce(operand, types().int64()).value;
  return ir().load(1, operand.value);  // a string that is not empty
}

void UnitLowering::branch_on(ExprId condition, BlockId if_true, BlockId if_false) {
  const bool is_known = !std::holds_alternative<std::monostate>(constant(condition));
  const auto* logic = is_known ? nullptr : ast().get<syntax::Binary>(condition);
  const auto* negation = is_known ? nullptr : ast().get<syntax::Unary>(condition);
  if (logic && (logic->op == syntax::BinaryOp::kLogicalAnd || logic->op == syntax::BinaryOp::kLogicalOr)) {
    const bool is_and = logic->op == syntax::BinaryOp::kLogicalAnd;
    const BlockId second = ir().add_block(is_and ? "and" : "or");
    branch_on(logic->left, is_and ? second : if_true, is_and ? if_false : second);
    ir().enter(second);
    branch_on(logic->right, if_true, if_false);
  } else if (negation && negation->op == syntax::UnaryOp::kNot) {
    branch_on(negation->operand, if_false, if_true);
  } else {
    ir().branch(Condition::ne, truth(opaque_copy(value(condition))), 0, if_true, if_false);
  }
}

// ---- Values with branches: both sides write a slot

void UnitLowering::assign_result(ir::SlotId result, TypeId type, ExprId expr) {
  if (!expr.valid()) return;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return discard(expr);
  Operand operand = value(expr);
  if (!operand.value.valid()) return write_slot(result, ir().constant(0));
  if (types::is_by_reference(types()[type])) operand = in_our_memory(operand);
  write_slot(result, convert(operand, type).value);
}

Operand UnitLowering::merge(TypeId type, ExprId condition, const std::function<void(ir::SlotId)>& then,
                            const std::function<void(ir::SlotId)>& otherwise) {
  const ir::SlotId result = new_slot("value");
  const BlockId yes = ir().add_block("then");
  const BlockId no = ir().add_block("else");
  const BlockId join = ir().add_block("join");
  branch_on(condition, yes, no);
  ir().enter(yes);
  then(result);
  ir().jump(join);
  ir().enter(no);
  otherwise(result);
  ir().jump(join);
  ir().enter(join);
  if (!type.valid() || types()[type].kind == Kind::kVoid) return {};
  return {type, merged_value(type, result), types::is_by_reference(types()[type])};
}

// What either of two ways has written. The verifier follows each with the bounds of its own, and the more of such
// values a loop has, the more combinations.
ValueId UnitLowering::merged_value(TypeId type, ir::SlotId result) {
  const ValueId value = read_slot(result);
  return is_walked_loop() && types::is_integer(types()[type]) ? launder(value) : value;
}

Operand UnitLowering::ternary(ExprId expr, const syntax::Ternary& node) {
  const TypeId result_type = type(expr);
  if (!node.then_value.valid()) {  // a ?: b
    const Operand first = value(node.condition);
    const ir::SlotId result = new_slot("value");
    when(
        Condition::ne, truth(first), ir().constant(0),
        [&] { write_slot(result, convert(in_our_memory(first), result_type).value); },
        [&] { assign_result(result, result_type, node.else_value); });
    return {result_type, merged_value(result_type, result), types::is_by_reference(types()[result_type])};
  }
  return merge(
      result_type, node.condition, [&](ir::SlotId slot) { assign_result(slot, result_type, node.then_value); },
      [&](ir::SlotId slot) { assign_result(slot, result_type, node.else_value); });
}

Operand UnitLowering::if_value(ExprId expr, const syntax::If& node) {
  const TypeId result_type = type(expr);
  if (node.is_comptime) {
    const ExprId kept = unit_->fact(expr).branch_taken ? node.then_branch : node.else_branch;
    if (!kept.valid()) return {};
    return convert(value(kept), result_type);
  }
  return merge(
      result_type, node.condition, [&](ir::SlotId slot) { assign_result(slot, result_type, node.then_branch); },
      [&](ir::SlotId slot) { assign_result(slot, result_type, node.else_branch); });
}

Operand UnitLowering::block_value(ExprId expr, const syntax::Block& node) {
  statements(node.statements);
  if (!node.value.valid()) return {};
  const Operand out = value(node.value);
  return type(expr).valid() && out.type.valid() ? convert(out, type(expr)) : out;
}

Operand UnitLowering::make_tuple(ExprId expr, const std::vector<ExprId>& elements) {
  const TypeId tuple = type(expr);
  const types::Type layout = types()[tuple];
  const ValueId address = memory(layout.size_bytes, "tuple");
  zero(address, layout.size_bytes);
  for (size_t i = 0; i < elements.size(); ++i) {
    const types::Member& part = layout.members[i];
    store_member(address, part.offset_bytes(), elements[i], part.type);
  }
  return {tuple, address, true};
}

// ---- Calls

Operand UnitLowering::call(ExprId expr, const syntax::Call& node) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (fact.function >= 0) return call_function(expr, node);
  return fact.builtin ? call_builtin(expr, *fact.builtin, node.arguments) : context_name(expr, node.name);
}

// `args` and `locals` alone are records of all that can be read; any other name is a field.
Operand UnitLowering::context_name(ExprId expr, std::string_view name) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (fact.field) return context_field(*fact.field);
  if ((name != "args" && name != "locals") || !fact.type.valid()) return {};
  const types::Type record = types()[fact.type];
  const ValueId address = memory(record.size_bytes, name);
  zero(address, record.size_bytes);
  for (const spec::ContextField& field : name == "args" ? unit_->context.args : unit_->context.locals) {
    if (!field.unreadable.empty()) continue;
    const auto member = std::ranges::find(record.members, field.name, &types::Member::name);
    if (member == record.members.end()) continue;
    const ValueId place = offset(address, member->offset_bytes());
    const Operand value = context_field(field);
    const bool is_shown_text =
        types()[member->type].kind == Kind::kString && types()[field.type].kind == Kind::kPointer;
    if (is_shown_text)
      read_string(place, types()[member->type].count, value.value, types()[field.type].space, false);
    else
      store_converted(place, value, member->type);
  }
  return {fact.type, address, true};
}

bool UnitLowering::writes_bytes(ExprId expr) const {
  const check::ExprFact& fact = unit_->fact(expr);
  if (!fact.builtin || !fact.builtin->lower_into || fact.replacement.valid() || fact.function >= 0) return false;
  if (!std::holds_alternative<std::monostate>(fact.constant)) return false;
  const Kind kind = module_.types[fact.type].kind;
  return (kind == Kind::kString || kind == Kind::kBuffer) &&
         (ast().get<syntax::Call>(expr) || ast().get<syntax::Name>(expr));
}

ValueId UnitLowering::write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes) {
  const auto* call = ast().get<syntax::Call>(expr);
  const spec::CallSite site{expr, ast()[expr].span,
                            call ? std::span<const ExprId>(call->arguments) : std::span<const ExprId>()};
  const source::Span outer = ir().span();
  ir().at(site.span);
  const ValueId length = unit_->fact(expr).builtin->lower_into(*this, site, destination, capacity_bytes);
  ir().at(outer);
  return length;
}

void UnitLowering::store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to) {
  const ValueId address = offset(zeroed, offset_bytes);
  const Kind kind = types()[to].kind;
  const auto known = program::is_probe_name(kind) ? text(expr) : std::nullopt;
  if (known) {
    ir().store(8, address, ir().constant(program::first_named(kind, *known, module_.program.probes)));
  } else if (kind == Kind::kString && offset_bytes % 8 == 0 && type(expr) == to && writes_bytes(expr)) {
    write_bytes(expr, address, types()[to].count);
  } else {
    store_converted(address, value(expr), to);
  }
}

Operand UnitLowering::call_builtin(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments) {
  const spec::CallSite site{expr, ast()[expr].span, arguments};
  if (builtin.lower) return builtin.lower(*this, site);
  if (builtin.lower_into) {
    const TypeId result = type(expr);
    const types::Type layout = types()[result];
    const ValueId address = memory(layout.size_bytes, spec::name_of(builtin));
    zero(address, layout.size_bytes);
    const bool is_buffer = layout.kind == Kind::kBuffer;
    const ValueId length = builtin.lower_into(*this, site, offset(address, is_buffer ? 4 : 0), layout.count);
    if (is_buffer) ir().store(4, address, length);
    return {result, address, true, AddressSpace::kBpf, length};
  }
  return {};
}

// Functions of the script are copied to where they are called: no calling convention, no limit on arguments, and the
// optimizer sees through them. The checker refuses recursion; the depth is bounded here all the same.
Operand UnitLowering::call_function(ExprId expr, const syntax::Call& node) {
  const syntax::Function* callee = &ast().functions[static_cast<size_t>(unit_->fact(expr).function)];
  const auto found = std::find_if(checked().units.begin(), checked().units.end(),
                                  [&](const check::Unit& each) { return each.function == callee; });
  if (found == checked().units.end() || depth_ >= kDeepestCall) return {};
  std::vector<Operand> arguments;
  for (const ExprId each : node.arguments) arguments.push_back(value(each));

  auto copy = std::make_unique<check::Unit>(*found);
  copy->context = main_unit_.context;
  copy->probes = main_unit_.probes;
  const check::Unit* caller = unit_;
  Activation* calling = activation_;
  Activation callee_activation{
      .unit = copy.get(), .return_block = ir().add_block("returned"), .result = new_slot("result")};
  unit_ = copy.get();
  activation_ = &callee_activation;
  ++depth_;
  find_shared_variables(callee_activation);
  const bool has_callbacks = !callee_activation.shared_variables.empty();
  const bool is_void = !unit_->result.valid() || types()[unit_->result].kind == Kind::kVoid;
  if (has_callbacks && !is_void) callee_activation.result_offset = add_frame_word();
  if (!is_void) {  // what a path without `return` gives
    const types::Type result = types()[unit_->result];
    const ValueId nothing = types::is_by_reference(result)
                                ? zeros(static_cast<uint32_t>(round_up(result.size_bytes, 8)))
                                : ir().constant(0);
    if (has_callbacks) {
      ir().store(8, frame(), nothing, callee_activation.result_offset);
    } else {
      write_slot(callee_activation.result, nothing);
    }
  }
  for (size_t i = 0; i < arguments.size() && i < unit_->parameters.size(); ++i)
    write_variable(unit_->parameters[i], arguments[i]);
  discard(callee->body);
  ir().jump(callee_activation.return_block);
  ir().enter(callee_activation.return_block);
  Operand out;
  if (!is_void) {
    const TypeId result = unit_->result;
    const ValueId got =
        has_callbacks ? ir().load(8, frame(), callee_activation.result_offset) : read_slot(callee_activation.result);
    out = {result, got, types::is_by_reference(types()[result])};
  }
  --depth_;
  unit_ = caller;
  activation_ = calling;
  inlined_units_.push_back(std::move(copy));
  return out;
}

}  // namespace espy::lower
