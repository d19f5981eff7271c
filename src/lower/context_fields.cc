#include "lower/context_fields.h"

namespace espy::lower {

using spec::Recipe;

Operand ContextFields::at(const spec::ContextField& field, ValueId base, int64_t offset_bytes, AddressSpace space) {
  const Recipe& recipe = field.recipe;
  if (!is_scalar(field.type)) return {field.type, offset(base, offset_bytes), true, space};
  return {field.type, reads_.read_scalar(base, offset_bytes, recipe.size_bytes, recipe.is_signed, space, {})};
}

// The contexts of raw probes consist of 8-byte words; a narrower argument is the low part of its word.
Operand ContextFields::context_word(const spec::ContextField& field, ValueId context) {
  using program::ProgramKind;
  const Recipe& recipe = field.recipe;
  const bool has_words = context_.kind != ProgramKind::kTracepoint && context_.kind != ProgramKind::kPerfEvent &&
                         context_.kind != ProgramKind::kKprobe && context_.kind != ProgramKind::kIter;
  if (!has_words || recipe.size_bytes == 8)
    return {field.type, ir().load(recipe.size_bytes, context, recipe.offset_bytes, recipe.is_signed)};
  return {field.type, extend(ir().load(8, context, recipe.offset_bytes), recipe.size_bytes, recipe.is_signed)};
}

// A string in a tracepoint's record, at an offset that the record holds.
Operand ContextFields::record_string(const spec::ContextField& field, ValueId context) {
  const Recipe& recipe = field.recipe;
  const ValueId string_offset = ir().unary(Op::k_zext16, ir().load(4, context, recipe.offset_bytes));
  const ValueId address = ir().binary(Op::k_add, context, string_offset);
  const int64_t origin = recipe.kind == Recipe::Kind::kRelativeLoc ? int64_t{recipe.offset_bytes} + 4 : 0;
  return {field.type, offset(address, origin), !is_scalar(field.type), AddressSpace::kKernel};
}

Operand ContextFields::read(const spec::ContextField& field) {
  const Recipe& recipe = field.recipe;
  const ValueId context = ir().context();
  switch (recipe.kind) {
    case Recipe::Kind::kContext: return context_word(field, context);
    case Recipe::Kind::kContextCopy:
      return {field.type, reads_.copied_scalar(context, recipe.offset_bytes, recipe.size_bytes, recipe.is_signed,
                                               AddressSpace::kKernel)};
    case Recipe::Kind::kContextAddress:
      return {field.type, offset(context, recipe.offset_bytes), !is_scalar(field.type), AddressSpace::kKernel};
    case Recipe::Kind::kDataLoc:
    case Recipe::Kind::kRelativeLoc: return record_string(field, context);
    case Recipe::Kind::kBehindPointer:
      return at(field, ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes, AddressSpace::kKernel);
    case Recipe::Kind::kTaskRegister: {
      const ValueId registers = ir().call(Helper::task_pt_regs, {ir().call(Helper::get_current_task_btf, {})});
      const ValueId word = ir().load(8, registers, recipe.inner_offset_bytes);
      return {field.type, extend(word, recipe.size_bytes, recipe.is_signed)};
    }
    case Recipe::Kind::kUserStackWord:
      return at(field, ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes, AddressSpace::kUser);
    case Recipe::Kind::kConstant: return {field.type, ir().constant(recipe.displacement)};
    case Recipe::Kind::kUserMemory: return at(field, user_address(recipe), 0, AddressSpace::kUser);
    case Recipe::Kind::kLocation: return locations_.read(field);
  }
  UNREACHABLE("kind of recipe");
}

// base + index * scale + displacement.
ValueId ContextFields::user_address(const Recipe& recipe) {
  ValueId address = ir().constant(recipe.displacement);
  if (recipe.has_base) address = offset(ir().load(8, ir().context(), recipe.offset_bytes), recipe.displacement);
  if (recipe.index_scale == 0) return address;
  const ValueId index = ir().load(8, ir().context(), recipe.index_offset_bytes);
  return ir().binary(Op::k_add, address, ir().binary(Op::k_mul, index, ir().constant(recipe.index_scale)));
}

ValueId ContextFields::register_value(const kernel::Register& reg) {
  if (!context_.registers_offset_bytes) return ir().constant(0);
  const auto size = static_cast<uint8_t>(reg.size_bytes);
  if (!context_.registers_behind_pointer)
    return ir().load(size, ir().context(), *context_.registers_offset_bytes + reg.offset_bytes);
  const ValueId registers = ir().load(8, ir().context(), *context_.registers_offset_bytes);
  return reads_.read_scalar(registers, reg.offset_bytes, size, false, AddressSpace::kKernel, {});
}

}  // namespace espy::lower
