#include "lower/access.h"

#include <algorithm>
#include <bit>

#include "lower/expressions.h"
#include "lower/maps.h"

namespace espy::lower {

// ---- Members

// The address space of the members of `base`: a struct, or a pointer to one.
AddressSpace Access::space_of(Operand base) {
  if (base.is_address) return base.space;
  const types::Type& pointer = types()[base.type];
  return pointer.kind == Kind::kPointer ? pointer.space : AddressSpace::kKernel;
}

ValueId Access::bit_field(ValueId base, const types::FoundMember& found, AddressSpace space) {
  const uint32_t first = found.offset_bits;
  const uint32_t last = first + found.bit_size - 1;
  const auto read = [&](uint32_t start, uint32_t width) {
    return reads_.read_scalar(base, start, static_cast<uint8_t>(width), false, space, {});
  };
  uint32_t width = 1;
  while (width < 8 && first / (width * 8) != last / (width * 8)) width *= 2;
  const uint32_t start = first / (width * 8) * width;
  const uint32_t shift = first - start * 8;
  const uint32_t unused = 64 - found.bit_size;
  ValueId high;
  if (last < (start + width) * 8) {
    high = ir().binary(Op::k_shl, read(start, width), unused - shift);
  } else {  // it crosses words
    const uint32_t next = start + width;
    const ValueId low = ir().binary(Op::k_shr, read(start, width), shift);
    const ValueId rest = ir().binary(Op::k_shl, read(next, std::bit_ceil(last / 8 + 1 - next)), 64 - shift);
    high = ir().binary(Op::k_shl, ir().binary(Op::k_or, low, rest), unused);
  }
  return ir().binary(types()[found.type].is_signed ? Op::k_sar : Op::k_shr, high, unused);
}

Operand Access::member_of(Operand base, TypeId struct_type, const types::FoundMember& found) {
  const AddressSpace space = space_of(base);
  return reads_.through(base, found.type, [&](ValueId address) {
    if (found.bit_size) return Operand{found.type, bit_field(address, found, space)};
    return reads_.typed(address, found.offset_bits / 8, found.type, space, struct_type);
  });
}

Operand Access::member(ExprId expr, const syntax::Access& node) {
  const check::ExprFact& fact = scope_.fact(expr);
  if (fact.field) return fields_.read(*fact.field);
  const TypeId result = fact.type;
  const Operand base = expressions_.value(node.base);
  if (!base.value.valid()) return {result, ir().constant(0)};
  TypeId outer = base.type;
  if (types()[outer].kind == Kind::kPointer) outer = types()[outer].element;
  module_.complete(outer);
  const auto found = types::find_member(types(), outer, node.name);
  if (!found) return {result, ir().constant(0)};
  Operand out = member_of(base, outer, *found);
  // The checker's type also has the address space of a pointer, and whether a char array is a string.
  if (out.is_address != is_scalar(result)) out.type = result;
  return out;
}

// Element `index` of a tuple; a zero of type `otherwise` if there is none.
Operand Access::tuple_element(Operand base, size_t index, TypeId otherwise) {
  const types::Type layout = types()[base.type];
  if (index >= layout.members.size()) return {otherwise, ir().constant(0)};
  const types::Member& member = layout.members[index];
  return memory_.load(offset(conversions_.in_our_memory(base).value, member.offset_bytes()), member.type);
}

Operand Access::tuple_member(ExprId expr, const syntax::TupleAccess& node) {
  const Operand base = conversions_.in_our_memory(expressions_.value(node.base));
  return tuple_element(base, node.index, scope_.type(expr));
}

// ---- Elements

// Element `index` of an array of `count`; zeros outside of it. With `count` 0, the length is unknown.
Operand Access::element_at(Operand base, TypeId element, ValueId index, uint32_t count) {
  module_.complete(element);
  const types::Type layout = types()[element];
  const bool is_pointer = !base.is_address && types()[base.type].kind == Kind::kPointer;
  const AddressSpace space = is_pointer ? types()[base.type].space : base.space;
  const uint32_t size = std::max(layout.size_bytes, 1u);
  const auto inside = [&](ValueId first) {
    const ValueId distance = size == 1 ? index : ir().binary(Op::k_mul, index, ir().constant(size));
    return reads_.typed(ir().binary(Op::k_add, first, distance), 0, element, space);
  };
  const ir::Instruction& known = functions_.function().values[index];
  if (count == 0) return reads_.through(base, element, inside);
  if (known.op == Op::k_konst && known.imm >= 0 && known.imm < count)
    return reads_.typed(base.value, known.imm * size, element, space);
  const bool is_reference = types::is_by_reference(layout);
  if (is_reference && space != AddressSpace::kBpf)
    return inside(base.value);  // its bytes are read later, with faults caught
  const ValueId out = select(
      Condition::ult, index, ir().constant(count), [&] { return conversions_.aligned(inside(base.value)).value; },
      [&] {
        count_loss_here(program::LossKind::kValue, "indexed outside of the array, which gave 0");
        return is_reference ? memory_.zeros(static_cast<uint32_t>(round_up(size, 8))) : ir().constant(0);
      });
  return {element, out, is_reference, AddressSpace::kBpf};
}

// The element of an array, a pointer, a tuple, a string or buffer; of a number, the byte.
Operand Access::index(ExprId expr, const syntax::Index& node) {
  const TypeId result = scope_.type(expr);
  Operand base = expressions_.value(node.base);
  const types::Type layout = types()[base.type];
  const auto known = scope_.integer(node.indices[0]);
  if (layout.kind == Kind::kTuple) return tuple_element(base, static_cast<size_t>(known.value_or(0)), result);
  const ValueId position = known ? ir().constant(*known) : expressions_.scalar(node.indices[0]);
  Operand out;
  switch (layout.kind) {
    case Kind::kString: out = element_at(base, result, position, layout.count); break;
    case Kind::kBuffer:
      base.value = offset(base.value, 4);
      out = element_at(base, result, position, layout.count);
      break;
    case Kind::kArray: out = element_at(base, layout.element, position, layout.count); break;
    case Kind::kPointer: out = element_at(base, layout.element, position, 0); break;
    default: {
      const ValueId shift = ir().binary(Op::k_shl, position, 3);
      return {result, conversions_.normalize(ir().binary(Op::k_shr, base.value, shift), result)};
    }
  }
  if (out.is_address != is_scalar(result)) out.type = result;
  return out;
}

// ---- Locations

Operand Access::location(ExprId expr) {
  const check::ExprFact& fact = scope_.fact(expr);
  if (fact.variable.valid() && ast().get<syntax::Variable>(expr))
    return {scope_.unit().variables[fact.variable].type, variables_.address(fact.variable), true};
  if (const auto* access = ast().get<syntax::Access>(expr); access && !fact.field)
    if (const Operand found = member_location(access->base, access->name); found.value.valid()) return found;
  if (const auto* tuple = ast().get<syntax::TupleAccess>(expr)) {
    const Operand base = conversions_.in_our_memory(expressions_.value(tuple->base));
    const types::Member& member = types()[base.type].members[tuple->index];
    return {member.type, offset(base.value, member.offset_bytes()), true};
  }
  if (const auto* unary = ast().get<syntax::Unary>(expr); unary && unary->op == syntax::UnaryOp::kDereference) {
    const Operand pointer = expressions_.value(unary->operand);
    return {fact.type, pointer.value, true, types()[pointer.type].space};
  }
  if (const auto* item = ast().get<syntax::Index>(expr); item && !fact.map.valid())
    return element_location(expr, *item);
  return expressions_.value(expr);
}

// Returns an operand without a value if there is no such member.
Operand Access::member_location(ExprId base_expr, const std::string& name) {
  const Operand base = expressions_.value(base_expr);
  TypeId outer = base.type;
  AddressSpace space = base.space;
  if (types()[outer].kind == Kind::kPointer) {
    space = types()[outer].space;
    outer = types()[outer].element;
  }
  const auto found = types::find_member(types(), module_.complete(outer), name);
  if (!found || !base.value.valid()) return {};
  return {found->type, offset(reads_.readable(base), found->offset_bits / 8), true, space};
}

Operand Access::element_location(ExprId expr, const syntax::Index& node) {
  const TypeId element = scope_.type(expr);
  const Operand base = expressions_.value(node.base);
  const ValueId distance = ir().binary(Op::k_mul, expressions_.scalar(node.indices[0]),
                                       ir().constant(std::max(types()[element].size_bytes, 1u)));
  const AddressSpace space = base.is_address ? base.space : types()[base.type].space;
  return {element, ir().binary(Op::k_add, base.value, distance), true, space};
}

// The address of a map's value is null if the key is absent.
Operand Access::address_of(ExprId expr) {
  const check::ExprFact& fact = scope_.fact(expr);
  if (!fact.map.valid()) return location(expr);
  return {fact.type, elements_.lookup(maps_.element(expr)), true};
}

}  // namespace espy::lower
