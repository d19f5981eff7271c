// Expressions: the recursion over the tree. What operators do is in operators.cc, what concerns maps in maps.cc.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lower/lowering.h"
#include "program/program.h"
#include "spec/builtin.h"

namespace espy::lower {
namespace {

using syntax::BinaryOp;

// Of functions that call functions. The checker rejects recursion, so this is only a safeguard.
constexpr size_t kMaxDepth = 16;

}  // namespace

Operand Lowering::value(ExprId expr) {
  const check::ExprFact& fact = unit().fact(expr);
  const source::Span outer = ir().span();
  ir().at(ast()[expr].span);
  const bool is_known = is_constant(expr) && fact.type.valid();
  Operand out = is_known ? constant_value(fact.type, fact.constant) : value_of_node(expr);
  if (fact.is_reduced && out.type.valid() && types::is_aggregation(types()[out.type]))
    out = reduce(out, types::is_aggregation(types()[fact.type]) ? types().int64() : fact.type);
  ir().at(outer);
  return out;
}

Operand Lowering::value_of_node(ExprId expr) {
  const check::ExprFact& fact = unit().fact(expr);
  if (fact.replacement.valid()) return convert(value(fact.replacement), fact.type);
  const auto map_value = [&] { return read_element(element(expr)); };
  return std::visit(
      Overloaded{
          [&](const syntax::Name& node) { return name_value(expr, node); },
          [&](const syntax::Variable&) { return read_variable(fact.variable); },
          [&](const syntax::Map&) { return map_value(); },
          [&](const syntax::Index& node) { return fact.map.valid() ? map_value() : index_value(expr, node); },
          [&](const syntax::Call& node) { return call_value(expr, node); },
          [&](const syntax::Comptime& node) { return value(node.operand); },
          [&](const syntax::Unary& node) { return unary_value(expr, node); },
          [&](const syntax::Binary& node) { return binary_value(expr, node); },
          [&](const syntax::Ternary& node) { return ternary_value(expr, node); },
          [&](const syntax::Access& node) { return member_value(expr, node); },
          [&](const syntax::TupleAccess& node) { return tuple_member_value(expr, node); },
          [&](const syntax::Cast& node) { return cast_value(expr, node); },
          [&](const syntax::Tuple& node) { return make_tuple(fact.type, node.elements); },
          [&](const syntax::Record& node) { return make_tuple(fact.type, node.values); },
          [&](const syntax::Block& node) { return block_value(expr, node); },
          [&](const syntax::If& node) { return if_value(expr, node); },
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

ValueId Lowering::scalar(ExprId expr) {
  if (const auto known = scalars_.find(expr); known != scalars_.end()) return known->second;
  const Operand operand = value(expr);
  if (!operand.value.valid()) return ir().constant(0);
  if (operand.is_address && types::is_aggregation(types()[operand.type])) return reduce(operand, types().int64()).value;
  if (operand.is_address && operand.type.valid() && types()[operand.type].size_bytes <= 8)
    return convert(operand, types().int64()).value;
  return operand.value;
}

void Lowering::with_scalar(ExprId expr, const std::function<void()>& body) {
  scalars_[expr] = scalar(expr);
  body();
  scalars_.erase(expr);
}

Operand Lowering::constant_value(TypeId type, const check::Constant& constant) {
  if (const auto* number = std::get_if<int64_t>(&constant))
    return convert({types().int64(), ir().constant(*number)}, type);
  const std::string& text = std::get<std::string>(constant);
  const uint32_t capacity = std::max(types()[type].size_bytes, 1u);
  std::string bytes = text.substr(0, capacity);
  bytes.resize(round_up(capacity, 8));
  const auto length = static_cast<int64_t>(std::min<size_t>(text.size(), capacity - 1));
  return {type, constant_bytes(bytes), true, AddressSpace::kBpf, ir().constant(length)};
}

Operand Lowering::block_value(ExprId expr, const syntax::Block& node) {
  lower_statements(node.statements);
  if (!node.value.valid()) return {};
  const Operand out = value(node.value);
  return type(expr).valid() && out.type.valid() ? convert(out, type(expr)) : out;
}

Operand Lowering::name_value(ExprId expr, const syntax::Name& node) {
  const check::ExprFact& fact = unit().fact(expr);
  return fact.builtin ? call_builtin(expr, *fact.builtin, {}) : context_name(fact, node.name);
}

Operand Lowering::call_value(ExprId expr, const syntax::Call& node) {
  const check::ExprFact& fact = unit().fact(expr);
  if (fact.function >= 0) return call_function(expr, node);
  return fact.builtin ? call_builtin(expr, *fact.builtin, node.arguments) : context_name(fact, node.name);
}

// `args` and `locals` alone are records; any other name is a field.
Operand Lowering::context_name(const check::ExprFact& fact, std::string_view name) {
  if (fact.field) return context_field(*fact.field);
  if ((name != "args" && name != "locals") || !fact.type.valid()) return {};
  return context_record(fact.type, name);
}

// ---- Values that are assembled member by member

Operand Lowering::make_tuple(TypeId type, const std::vector<ExprId>& elements) {
  const types::Type layout = types()[type];
  const ValueId address = zeroed_memory(layout.size_bytes, "tuple");
  for (size_t i = 0; i < elements.size(); ++i) {
    const types::Member& member = layout.members[i];
    store_member(address, member.offset_bytes(), elements[i], member.type);
  }
  return {type, address, true};
}

Operand Lowering::context_record(TypeId type, std::string_view name) {
  const types::Type record = types()[type];
  const ValueId address = zeroed_memory(record.size_bytes, name);
  for (const spec::ContextField& field : name == "args" ? context_.args : context_.locals) {
    if (!field.unreadable.empty()) continue;
    const auto member = std::ranges::find(record.members, field.name, &types::Member::name);
    if (member == record.members.end()) continue;
    const ValueId destination = offset(address, member->offset_bytes());
    const Operand value = context_field(field);
    const types::Type& from = types()[field.type];
    const types::Type& to = types()[member->type];
    if (to.kind == Kind::kString && from.kind == Kind::kPointer)  // shown as text
      read_string(destination, to.count, value.value, from.space, false);
    else
      store_converted(destination, value, member->type);
  }
  return {type, address, true};
}

void Lowering::store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to) {
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

// ---- Members

// The address space of the members of `base`: a struct, or a pointer to one.
AddressSpace Lowering::space_of_members(Operand base) {
  if (base.is_address) return base.space;
  const types::Type& pointer = types()[base.type];
  return pointer.kind == Kind::kPointer ? pointer.space : AddressSpace::kKernel;
}

ValueId Lowering::read_bit_field(ValueId base, const types::FoundMember& found, AddressSpace space) {
  const uint32_t first = found.offset_bits;
  const uint32_t last = first + found.bit_size - 1;
  const auto word = [&](uint32_t start, uint32_t width) {
    return read_scalar(base, start, static_cast<uint8_t>(width), false, space, {});
  };
  uint32_t width = 1;
  while (width < 8 && first / (width * 8) != last / (width * 8)) width *= 2;
  const uint32_t start = first / (width * 8) * width;
  const uint32_t shift = first - start * 8;
  const uint32_t unused = 64 - found.bit_size;
  ValueId high;
  if (last < (start + width) * 8) {
    high = ir().binary(Op::k_shl, word(start, width), unused - shift);
  } else {  // it crosses words
    const uint32_t next = start + width;
    const ValueId low = ir().binary(Op::k_shr, word(start, width), shift);
    const ValueId rest = ir().binary(Op::k_shl, word(next, std::bit_ceil(last / 8 + 1 - next)), 64 - shift);
    high = ir().binary(Op::k_shl, ir().binary(Op::k_or, low, rest), unused);
  }
  return ir().binary(types()[found.type].is_signed ? Op::k_sar : Op::k_shr, high, unused);
}

Operand Lowering::read_member(Operand base, TypeId struct_type, const types::FoundMember& found) {
  const AddressSpace space = space_of_members(base);
  return through_pointer(base, found.type, [&](ValueId address) {
    if (found.bit_size) return Operand{found.type, read_bit_field(address, found, space)};
    return read_typed(address, found.offset_bits / 8, found.type, space, struct_type);
  });
}

Operand Lowering::member_value(ExprId expr, const syntax::Access& node) {
  const check::ExprFact& fact = unit().fact(expr);
  if (fact.field) return context_field(*fact.field);
  const TypeId result = fact.type;
  const Operand base = value(node.base);
  if (!base.value.valid()) return {result, ir().constant(0)};
  TypeId outer = base.type;
  if (types()[outer].kind == Kind::kPointer) outer = types()[outer].element;
  module_.complete(outer);
  const auto found = types::find_member(types(), outer, node.name);
  if (!found) return {result, ir().constant(0)};
  Operand out = read_member(base, outer, *found);
  // The checker's type also has the address space of a pointer, and whether a char array is a string.
  if (out.is_address != is_scalar(result)) out.type = result;
  return out;
}

// Element `index` of a tuple; a zero of type `otherwise` if there is none.
Operand Lowering::member_of_tuple(Operand base, size_t index, TypeId otherwise) {
  const types::Type layout = types()[base.type];
  if (index >= layout.members.size()) return {otherwise, ir().constant(0)};
  const types::Member& member = layout.members[index];
  return load(offset(in_our_memory(base).value, member.offset_bytes()), member.type);
}

Operand Lowering::tuple_member_value(ExprId expr, const syntax::TupleAccess& node) {
  return member_of_tuple(value(node.base), node.index, type(expr));
}

// ---- Elements

// Element `index` of an array of `count`; zeros outside of it. With `count` 0, the length is unknown.
Operand Lowering::array_element(Operand base, TypeId element, ValueId index, uint32_t count) {
  module_.complete(element);
  const types::Type layout = types()[element];
  const bool is_pointer = !base.is_address && types()[base.type].kind == Kind::kPointer;
  const AddressSpace space = is_pointer ? types()[base.type].space : base.space;
  const uint32_t size = std::max(layout.size_bytes, 1u);
  const auto inside = [&](ValueId first) {
    const ValueId distance = size == 1 ? index : ir().binary(Op::k_mul, index, ir().constant(size));
    return read_typed(ir().binary(Op::k_add, first, distance), 0, element, space);
  };
  const ir::Instruction& known = functions_.function().values[index];
  if (count == 0) return through_pointer(base, element, inside);
  if (known.op == Op::k_konst && known.imm >= 0 && known.imm < count)
    return read_typed(base.value, known.imm * size, element, space);
  const bool is_reference = types::is_by_reference(layout);
  if (is_reference && space != AddressSpace::kBpf)
    return inside(base.value);  // its bytes are read later, with faults caught
  const ValueId out = select(
      Condition::ult, index, ir().constant(count), [&] { return in_aligned_memory(inside(base.value)).value; },
      [&] {
        count_loss_here(program::LossKind::kValue, "array index(es) out of range returned 0");
        return is_reference ? zeros(round_up(size, 8)) : ir().constant(0);
      });
  return {element, out, is_reference, AddressSpace::kBpf};
}

// The element of an array, a pointer, a tuple, a string or buffer; of a number, the byte.
Operand Lowering::index_value(ExprId expr, const syntax::Index& node) {
  const TypeId result = type(expr);
  Operand base = value(node.base);
  const types::Type layout = types()[base.type];
  const auto known = integer(node.indices[0]);
  if (layout.kind == Kind::kTuple) return member_of_tuple(base, static_cast<size_t>(known.value_or(0)), result);
  const ValueId position = known ? ir().constant(*known) : scalar(node.indices[0]);
  Operand out;
  switch (layout.kind) {
    case Kind::kString: out = array_element(base, result, position, layout.count); break;
    case Kind::kBuffer:
      base.value = offset(base.value, 4);
      out = array_element(base, result, position, layout.count);
      break;
    case Kind::kArray: out = array_element(base, layout.element, position, layout.count); break;
    case Kind::kPointer: out = array_element(base, layout.element, position, 0); break;
    default: {
      const ValueId shift = ir().binary(Op::k_shl, position, 3);
      return {result, normalize(ir().binary(Op::k_shr, base.value, shift), result)};
    }
  }
  if (out.is_address != is_scalar(result)) out.type = result;
  return out;
}

// ---- The memory that an expression designates

Operand Lowering::location(ExprId expr) {
  const check::ExprFact& fact = unit().fact(expr);
  if (fact.variable.valid() && ast().get<syntax::Variable>(expr))
    return {unit().variables[fact.variable].type, variable_address(fact.variable), true};
  if (const auto* access = ast().get<syntax::Access>(expr); access && !fact.field)
    if (const Operand found = member_location(access->base, access->name); found.value.valid()) return found;
  if (const auto* tuple = ast().get<syntax::TupleAccess>(expr)) {
    const Operand base = in_our_memory(value(tuple->base));
    const types::Member& member = types()[base.type].members[tuple->index];
    return {member.type, offset(base.value, member.offset_bytes()), true};
  }
  if (const auto* unary = ast().get<syntax::Unary>(expr); unary && unary->op == syntax::UnaryOp::kDereference) {
    const Operand pointer = value(unary->operand);
    return {fact.type, pointer.value, true, types()[pointer.type].space};
  }
  if (const auto* item = ast().get<syntax::Index>(expr); item && !fact.map.valid())
    return element_location(expr, *item);
  return value(expr);
}

// Returns an operand without a value if there is no such member.
Operand Lowering::member_location(ExprId base_expr, const std::string& name) {
  const Operand base = value(base_expr);
  TypeId outer = base.type;
  AddressSpace space = base.space;
  if (types()[outer].kind == Kind::kPointer) {
    space = types()[outer].space;
    outer = types()[outer].element;
  }
  const auto found = types::find_member(types(), module_.complete(outer), name);
  if (!found || !base.value.valid()) return {};
  return {found->type, offset(readable_address(base), found->offset_bits / 8), true, space};
}

Operand Lowering::element_location(ExprId expr, const syntax::Index& node) {
  const TypeId element = type(expr);
  const Operand base = value(node.base);
  const ValueId distance =
      ir().binary(Op::k_mul, scalar(node.indices[0]), ir().constant(std::max(types()[element].size_bytes, 1u)));
  const AddressSpace space = base.is_address ? base.space : types()[base.type].space;
  return {element, ir().binary(Op::k_add, base.value, distance), true, space};
}

// The address of a map's value is null if the key is absent.
Operand Lowering::address_of(ExprId expr) {
  const check::ExprFact& fact = unit().fact(expr);
  if (!fact.map.valid()) return location(expr);
  return {fact.type, element_address(element(expr)), true};
}

// ---- Conditions, and values that come from one of two branches

ValueId Lowering::truth(Operand operand) {
  if (!operand.value.valid()) return ir().constant(0);
  if (!operand.is_address) return operand.value;
  operand = in_our_memory(operand);
  if (types::is_aggregation(types()[operand.type])) return reduce(operand, types().int64()).value;
  return ir().load(1, operand.value);  // a string is true unless it is empty
}

void Lowering::branch_on(ExprId condition, BlockId if_true, BlockId if_false) {
  const bool is_known = is_constant(condition);
  const auto* logic = is_known ? nullptr : ast().get<syntax::Binary>(condition);
  const auto* negation = is_known ? nullptr : ast().get<syntax::Unary>(condition);
  if (logic && (logic->op == BinaryOp::kLogicalAnd || logic->op == BinaryOp::kLogicalOr)) {
    const bool is_and = logic->op == BinaryOp::kLogicalAnd;
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

Operand Lowering::logical_value(ExprId expr) {
  const TypeId result_type = type(expr);
  const ir::SlotId slot = new_slot("logic");
  const BlockId yes = ir().add_block("true");
  const BlockId no = ir().add_block("false");
  const BlockId join = ir().add_block("join");
  branch_on(expr, yes, no);
  ir().enter(yes);
  write_slot(slot, ir().constant(1));
  ir().jump(join);
  ir().enter(no);
  write_slot(slot, ir().constant(0));
  ir().jump(join);
  ir().enter(join);
  return {result_type, joined_value(result_type, slot)};
}

void Lowering::write_branch_result(ir::SlotId result, TypeId type, ExprId expr) {
  if (!expr.valid()) return;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return discard(expr);
  Operand operand = value(expr);
  if (!operand.value.valid()) return write_slot(result, ir().constant(0));
  if (!is_scalar(type)) operand = in_aligned_memory(operand);
  write_slot(result, convert(operand, type).value);
}

Operand Lowering::value_of_branches(TypeId type, ExprId condition, ExprId if_true, ExprId if_false) {
  const ir::SlotId result = new_slot("value");
  const BlockId yes = ir().add_block("then");
  const BlockId no = ir().add_block("else");
  const BlockId join = ir().add_block("join");
  branch_on(condition, yes, no);
  ir().enter(yes);
  write_branch_result(result, type, if_true);
  ir().jump(join);
  ir().enter(no);
  write_branch_result(result, type, if_false);
  ir().jump(join);
  ir().enter(join);
  if (!type.valid() || types()[type].kind == Kind::kVoid) return {};
  return {type, joined_value(type, result), !is_scalar(type)};
}

// The value that one of two branches has written. In a loop, the verifier would follow the bounds of each branch, and
// the combinations of several such values multiply.
ValueId Lowering::joined_value(TypeId type, ir::SlotId result) {
  const ValueId value = read_slot(result);
  return is_in_converging_loop() && types::is_integer(types()[type]) ? launder(value) : value;
}

Operand Lowering::value_of_branch(TypeId type, ExprId branch) {
  if (!branch.valid()) return {};
  const Operand out = value(branch);
  return out.value.valid() ? convert(out, type) : Operand{};
}

Operand Lowering::ternary_value(ExprId expr, const syntax::Ternary& node) {
  const TypeId result_type = type(expr);
  const ExprId then_value = node.then_value.valid() ? node.then_value : node.condition;
  if (const auto is_true = unit().fact(expr).branch_taken)
    return value_of_branch(result_type, *is_true ? then_value : node.else_value);
  if (node.then_value.valid()) return value_of_branches(result_type, node.condition, node.then_value, node.else_value);
  const Operand first = value(node.condition);  // a ?: b
  const ir::SlotId result = new_slot("value");
  when(
      Condition::ne, truth(first), ir().constant(0),
      [&] { write_slot(result, convert(in_aligned_memory(first), result_type).value); },
      [&] { write_branch_result(result, result_type, node.else_value); });
  return {result_type, joined_value(result_type, result), !is_scalar(result_type)};
}

Operand Lowering::if_value(ExprId expr, const syntax::If& node) {
  const TypeId result_type = type(expr);
  const auto is_true = unit().fact(expr).branch_taken;
  if (!is_true) return value_of_branches(result_type, node.condition, node.then_branch, node.else_branch);
  return value_of_branch(result_type, *is_true ? node.then_branch : node.else_branch);
}

// ---- Calls of builtins

Operand Lowering::call_builtin(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments) {
  const spec::CallSite site{expr, ast()[expr].span, arguments};
  if (builtin.lower) return builtin.lower(*this, site);
  return builtin.lower_into ? call_into_memory(expr, spec::name_of(builtin)) : Operand{};
}

// The string or buffer of `expr`, which its builtin writes to memory of its own.
Operand Lowering::call_into_memory(ExprId expr, std::string_view name) {
  const TypeId result = type(expr);
  const ValueId address = zeroed_memory(types()[result].size_bytes, name);
  const ValueId length = write_whole(expr, address);
  return {result, address, true, AddressSpace::kBpf, length};
}

bool Lowering::writes_bytes(ExprId expr) const {
  const check::ExprFact& fact = unit().fact(expr);
  if (!fact.builtin || !fact.builtin->lower_into || fact.replacement.valid() || fact.function >= 0) return false;
  if (is_constant(expr)) return false;
  const Kind kind = types()[fact.type].kind;
  return (kind == Kind::kString || kind == Kind::kBuffer) &&
         (ast().get<syntax::Call>(expr) || ast().get<syntax::Name>(expr));
}

ValueId Lowering::write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes) {
  const auto* call = ast().get<syntax::Call>(expr);
  const spec::CallSite site{expr, ast()[expr].span,
                            call ? std::span<const ExprId>(call->arguments) : std::span<const ExprId>()};
  const source::Span outer = ir().span();
  ir().at(site.span);
  const ValueId length = unit().fact(expr).builtin->lower_into(*this, site, destination, capacity_bytes);
  ir().at(outer);
  return length;
}

ValueId Lowering::write_whole(ExprId expr, ValueId destination) {
  const types::Type layout = types()[type(expr)];
  if (layout.kind != Kind::kBuffer) return write_bytes(expr, destination, layout.count);
  const ValueId length = write_bytes(expr, offset(destination, 4), layout.count);
  ir().store(4, destination, length);
  return length;
}

void Lowering::update_aggregation(ExprId call, const spec::Builtin& builtin, ValueId address, bool is_atomic) {
  const spec::CallSite site{call, ast()[call].span, ast().get<syntax::Call>(call)->arguments};
  builtin.lower_update(*this, site, address, is_atomic);
}

void Lowering::count_truncated(ExprId call, ValueId size_bytes, Condition condition, uint32_t limit) {
  if (call.valid() && may_truncate_.contains(call.index)) return;
  when(condition, size_bytes, ir().constant(limit), [&] {
    count_loss(program::LossKind::kString,
               fmt::format("string(s) truncated at max_strlen = {} in keys, comparisons and lengths (raise max_strlen)",
                           config().limits.max_strlen));
  });
}

bool Lowering::calls(decltype(spec::Builtin::lower) emitter) {
  const auto [known, is_new] = called_.try_emplace(&unit());
  if (is_new)
    for (const ExprId expr : unit().exprs.ids())
      if (const spec::Builtin* builtin = unit().fact(expr).builtin) known->second.insert(builtin->lower);
  return known->second.contains(emitter);
}

// ---- Calls of the script's functions
//
// They are inlined: there is no calling convention and no limit on arguments, and the optimizer sees through them.

Operand Lowering::call_function(ExprId expr, const syntax::Call& node) {
  const check::Unit* found = find_callee(expr);
  if (!found || inline_depth_ >= kMaxDepth) return {};
  std::vector<Operand> arguments;
  for (const ExprId each : node.arguments) arguments.push_back(value(each));
  check::Unit callee = *found;
  callee.context = context_;
  callee.probes = unit().probes;
  ++inline_depth_;
  const Operand out = inline_function(callee, arguments);
  --inline_depth_;
  // The next callee can have the same address.
  called_.erase(&callee);
  many_branches_.erase(&callee);
  return out;
}

const check::Unit* Lowering::find_callee(ExprId call) const {
  const syntax::Function* function = &ast().functions[static_cast<size_t>(unit().fact(call).function)];
  const auto found = std::ranges::find(module_.checked.units, function, &check::Unit::function);
  return found == module_.checked.units.end() ? nullptr : &*found;
}

Operand Lowering::inline_function(const check::Unit& callee, const std::vector<Operand>& arguments) {
  Activation activation{.unit = &callee,
                        .shared_variables = find_shared_variables(ast(), callee),
                        .return_block = ir().add_block("returned"),
                        .result = new_slot("result")};
  Operand out;
  with_activation(activation, [&] {
    init_function_result();
    for (size_t i = 0; i < arguments.size() && i < callee.parameters.size(); ++i)
      write_variable(callee.parameters[i], arguments[i]);
    discard(callee.function->body);
    ir().jump(activation.return_block);
    ir().enter(activation.return_block);
    out = function_result();
  });
  return out;
}

// The result of a path without `return` is zero.
void Lowering::init_function_result() {
  const TypeId type = activation_->unit->result;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return;
  const bool may_return_from_callback = !activation_->shared_variables.empty();
  if (may_return_from_callback) activation_->result_offset = add_frame_word();
  write_function_result(is_scalar(type) ? ir().constant(0) : zeros(round_up(types()[type].size_bytes, 8)));
}

void Lowering::write_function_result(ValueId result) {
  if (activation_->result_offset != 0) {
    ir().store(8, frame_address(), result, activation_->result_offset);
  } else {
    write_slot(activation_->result, result);
  }
}

Operand Lowering::function_result() {
  const TypeId type = activation_->unit->result;
  if (!type.valid() || types()[type].kind == Kind::kVoid) return {};
  const ValueId value = activation_->result_offset != 0 ? ir().load(8, frame_address(), activation_->result_offset)
                                                        : read_slot(activation_->result);
  return {type, value, !is_scalar(type)};
}

}  // namespace espy::lower
