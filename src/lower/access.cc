// Members, elements, pointers: from where something lies to its value.
#include <algorithm>
#include <bit>

#include "lower/unit.h"

namespace espy::lower {

TypeId UnitLowering::complete(TypeId type) {
  if (types()[type].kind == Kind::kStruct && !types()[type].complete) kernel().complete(types(), type);
  return type;
}

Operand UnitLowering::at(ValueId address, int64_t offset_bytes, TypeId type, AddressSpace space, TypeId struct_type) {
  complete(type);
  const types::Type& layout = types()[type];
  if (types::is_by_reference(layout)) return {type, offset(address, offset_bytes), true, space};
  if (layout.size_bytes == 0) return {type, ir().constant(0)};
  return {type, read_scalar(address, offset_bytes, static_cast<uint8_t>(layout.size_bytes), layout.is_signed, space,
                            struct_type)};
}

Operand UnitLowering::dereference(Operand pointer, TypeId type) {
  const types::Type from = types()[pointer.type];
  const AddressSpace space = from.kind == Kind::kPointer ? from.space : AddressSpace::kKernel;
  return at(pointer.value, 0, type, pointer.is_address ? pointer.space : space);
}

// ---- Members

ValueId UnitLowering::bit_field(ValueId base, const types::FoundMember& found, AddressSpace space) {
  const uint32_t first = found.offset_bits;
  const uint32_t last = first + found.bit_size - 1;
  uint32_t width = 1;
  while (width < 8 && first / (width * 8) != last / (width * 8)) width *= 2;
  uint32_t start = first / (width * 8) * width;
  if (first / (width * 8) != last / (width * 8)) start = first / 8;  // across words
  const uint32_t shift = first - start * 8;
  const ValueId word = read_scalar(base, start, static_cast<uint8_t>(width), false, space, {});
  const ValueId high = ir().binary(Op::k_shl, word, 64 - shift - found.bit_size);
  return ir().binary(types()[found.type].is_signed ? Op::k_sar : Op::k_shr, high, 64 - found.bit_size);
}

Operand UnitLowering::member_of(Operand base, TypeId struct_type, const types::FoundMember& found) {
  AddressSpace space = base.space;
  if (!base.is_address) {
    const types::Type& pointer = types()[base.type];
    space = pointer.kind == Kind::kPointer ? pointer.space : AddressSpace::kKernel;
  }
  if (found.bit_size) return {found.type, bit_field(base.value, found, space)};
  return at(base.value, found.offset_bits / 8, found.type, space, struct_type);
}

Operand UnitLowering::member(ExprId expr, const syntax::Access& node) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (fact.field) return context_field(*fact.field);
  const TypeId result = fact.type;
  const Operand base = value(node.base);
  if (!base.value.valid()) return {result, ir().constant(0)};
  TypeId outer = base.type;
  if (types()[outer].kind == Kind::kPointer) outer = types()[outer].element;
  complete(outer);
  const auto found = types::find_member(types(), outer, node.name);
  if (!found) return {result, ir().constant(0)};
  Operand out = member_of(base, outer, *found);
  // The checker knows better which space a member's pointer is in, and what a char array is.
  if (out.is_address == types::is_by_reference(types()[result])) out.type = result;
  return out;
}

Operand UnitLowering::tuple_member(ExprId expr, const syntax::TupleAccess& node) {
  const Operand base = in_our_memory(value(node.base));
  const types::Type layout = types()[base.type];
  if (node.index >= layout.members.size()) return {type(expr), ir().constant(0)};
  const types::Member& part = layout.members[node.index];
  return load(offset(base.value, part.offset_bytes()), part.type);
}

// ---- Elements

// Element `index` of `count` (0: of a pointer, nobody knows how many); outside of an array there are zeros.
Operand UnitLowering::element_at(Operand base, TypeId element, ValueId index, uint32_t count) {
  complete(element);
  const types::Type layout = types()[element];
  AddressSpace space = base.space;
  if (!base.is_address) space = types()[base.type].kind == Kind::kPointer ? types()[base.type].space : base.space;
  const uint32_t size = std::max(layout.size_bytes, 1u);
  const auto inside = [&] {
    const ValueId distance = size == 1 ? index : ir().binary(Op::k_mul, index, ir().constant(size));
    return at(ir().binary(Op::k_add, base.value, distance), 0, element, space);
  };
  const ir::Instruction& known = function().values[index];
  if (count == 0) return inside();
  if (known.op == Op::k_konst && known.imm >= 0 && known.imm < count)
    return at(base.value, known.imm * size, element, space);
  const bool is_reference = types::is_by_reference(layout);
  if (is_reference && space != AddressSpace::kBpf) return inside();  // reading it gives zeros or what is there
  const ValueId out = select(
      Condition::ult, index, ir().constant(count), [&] { return inside().value; },
      [&] { return is_reference ? zeros(static_cast<uint32_t>(round_up(size, 8))) : ir().constant(0); });
  return {element, out, is_reference, AddressSpace::kBpf};
}

Operand UnitLowering::index(ExprId expr, const syntax::Index& node) {
  const TypeId result = type(expr);
  const Operand base = value(node.base);
  const types::Type layout = types()[base.type];
  if (layout.kind == Kind::kTuple) {
    const auto which = static_cast<size_t>(integer(node.indices[0]).value_or(0));
    if (which >= layout.members.size()) return {result, ir().constant(0)};
    return load(offset(in_our_memory(base).value, layout.members[which].offset_bytes()), layout.members[which].type);
  }
  const auto known = integer(node.indices[0]);
  const ValueId place_index = known ? ir().constant(*known) : scalar(node.indices[0]);
  Operand out;
  switch (layout.kind) {
    case Kind::kString: out = element_at(base, result, place_index, layout.count); break;
    case Kind::kBuffer: {
      Operand bytes = base;
      bytes.value = offset(base.value, 4);
      out = element_at(bytes, result, place_index, layout.count);
      break;
    }
    case Kind::kArray: out = element_at(base, layout.element, place_index, layout.count); break;
    case Kind::kPointer: out = element_at(base, layout.element, place_index, 0); break;
    default: {  // a number's byte
      const ValueId shift = ir().binary(Op::k_shl, place_index, 3);
      return {result, normalise(ir().binary(Op::k_shr, base.value, shift), result)};
    }
  }
  if (out.is_address == types::is_by_reference(types()[result])) out.type = result;
  return out;
}

// ---- Places

// Where `expr` lies, not loaded: an address, or nothing if it is a mere value.
Operand UnitLowering::place(ExprId expr) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (fact.variable.valid() && ast().get<syntax::Variable>(expr))
    return {unit_->variables[fact.variable].type, variable_address(fact.variable), true};
  if (const auto* access = ast().get<syntax::Access>(expr); access && !fact.field) {
    const Operand base = value(access->base);
    TypeId outer = base.type;
    AddressSpace space = base.space;
    if (types()[outer].kind == Kind::kPointer) {
      space = types()[outer].space;
      outer = types()[outer].element;
    }
    const auto found = types::find_member(types(), complete(outer), access->name);
    if (found && base.value.valid()) return {found->type, offset(base.value, found->offset_bits / 8), true, space};
  }
  if (const auto* part = ast().get<syntax::TupleAccess>(expr)) {
    const Operand base = in_our_memory(value(part->base));
    const types::Member& found = types()[base.type].members[part->index];
    return {found.type, offset(base.value, found.offset_bytes()), true};
  }
  if (const auto* pointee = ast().get<syntax::Unary>(expr); pointee && pointee->op == syntax::UnaryOp::kDereference) {
    const Operand pointer = value(pointee->operand);
    return {fact.type, pointer.value, true, types()[pointer.type].space};
  }
  if (const auto* item = ast().get<syntax::Index>(expr); item && !fact.map.valid()) {
    const Operand base = value(item->base);
    const ValueId distance =
        ir().binary(Op::k_mul, scalar(item->indices[0]), ir().constant(std::max(types()[fact.type].size_bytes, 1u)));
    const AddressSpace space = base.is_address ? base.space : types()[base.type].space;
    return {fact.type, ir().binary(Op::k_add, base.value, distance), true, space};
  }
  return value(expr);
}

Operand UnitLowering::address_of(ExprId expr) {
  const check::ExprFact& fact = unit_->fact(expr);
  if (!fact.map.valid()) return place(expr);
  ValueId address = lookup(element(expr));  // null where the key is not there, as C would have it
  return {fact.type, address, true};
}

}  // namespace espy::lower
