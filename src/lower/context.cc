// What a probe tells: the fields of its context, registers, and values at the locations that debug information gives.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "lower/lowering.h"

namespace espy::lower {

using spec::Recipe;

// ---- Fields of the context: arguments, return values, registers

Operand Lowering::context_field(const spec::ContextField& field) {
  const Recipe& recipe = field.recipe;
  const ValueId context = ir().context();
  switch (recipe.kind) {
    case Recipe::Kind::kContext: return context_word(field, context);
    case Recipe::Kind::kContextCopy:
      return {field.type, read_scalar_by_helper(context, recipe.offset_bytes, recipe.size_bytes, recipe.is_signed,
                                                AddressSpace::kKernel)};
    case Recipe::Kind::kContextAddress:
      return {field.type, offset(context, recipe.offset_bytes), !is_scalar(field.type), AddressSpace::kKernel};
    case Recipe::Kind::kDataLoc:
    case Recipe::Kind::kRelativeLoc: return record_string(field, context);
    case Recipe::Kind::kBehindPointer:
      return field_at(field, ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes,
                      AddressSpace::kKernel);
    case Recipe::Kind::kTaskRegister: {
      const ValueId registers = ir().call(Helper::task_pt_regs, {ir().call(Helper::get_current_task_btf, {})});
      const ValueId word = ir().load(8, registers, recipe.inner_offset_bytes);
      return {field.type, extend(word, recipe.size_bytes, recipe.is_signed)};
    }
    case Recipe::Kind::kUserStackWord:
      return field_at(field, ir().load(8, context, recipe.offset_bytes), recipe.inner_offset_bytes,
                      AddressSpace::kUser);
    case Recipe::Kind::kConstant: return {field.type, ir().constant(recipe.displacement)};
    case Recipe::Kind::kUserMemory: return field_at(field, user_address(recipe), 0, AddressSpace::kUser);
    case Recipe::Kind::kLocation: return value_at_location(field);
  }
  UNREACHABLE("kind of recipe");
}

Operand Lowering::field_at(const spec::ContextField& field, ValueId base, int64_t offset_bytes, AddressSpace space) {
  const Recipe& recipe = field.recipe;
  if (!is_scalar(field.type)) return {field.type, offset(base, offset_bytes), true, space};
  return {field.type, read_scalar(base, offset_bytes, recipe.size_bytes, recipe.is_signed, space, {})};
}

// The contexts of raw probes consist of 8-byte words; a narrower argument is the low part of its word.
Operand Lowering::context_word(const spec::ContextField& field, ValueId context) {
  using program::ProgramKind;
  const Recipe& recipe = field.recipe;
  const bool has_words = context_.kind != ProgramKind::kTracepoint && context_.kind != ProgramKind::kPerfEvent &&
                         context_.kind != ProgramKind::kKprobe && context_.kind != ProgramKind::kIter;
  if (!has_words || recipe.size_bytes == 8)
    return {field.type, ir().load(recipe.size_bytes, context, recipe.offset_bytes, recipe.is_signed)};
  return {field.type, extend(ir().load(8, context, recipe.offset_bytes), recipe.size_bytes, recipe.is_signed)};
}

// A string in a tracepoint's record, at an offset that the record holds.
Operand Lowering::record_string(const spec::ContextField& field, ValueId context) {
  const Recipe& recipe = field.recipe;
  const ValueId string_offset = ir().unary(Op::k_zext16, ir().load(4, context, recipe.offset_bytes));
  const ValueId address = ir().binary(Op::k_add, context, string_offset);
  const int64_t origin = recipe.kind == Recipe::Kind::kRelativeLoc ? int64_t{recipe.offset_bytes} + 4 : 0;
  return {field.type, offset(address, origin), !is_scalar(field.type), AddressSpace::kKernel};
}

// base + index * scale + displacement.
ValueId Lowering::user_address(const Recipe& recipe) {
  ValueId address = ir().constant(recipe.displacement);
  if (recipe.has_base) address = offset(ir().load(8, ir().context(), recipe.offset_bytes), recipe.displacement);
  if (recipe.index_scale == 0) return address;
  const ValueId index = ir().load(8, ir().context(), recipe.index_offset_bytes);
  return ir().binary(Op::k_add, address, ir().binary(Op::k_mul, index, ir().constant(recipe.index_scale)));
}

ValueId Lowering::register_value(const kernel::Register& reg) {
  if (!context_.registers_offset_bytes) return ir().constant(0);
  const auto size = static_cast<uint8_t>(reg.size_bytes);
  if (!context_.registers_behind_pointer)
    return ir().load(size, ir().context(), *context_.registers_offset_bytes + reg.offset_bytes);
  const ValueId registers = ir().load(8, ir().context(), *context_.registers_offset_bytes);
  return read_scalar(registers, reg.offset_bytes, size, false, AddressSpace::kKernel, {});
}

// ---- Values of a probed program at the locations that debug information gives (types/value_location.h)
//
// The operations of a location are run at compile time, on a stack of IR values; the program contains only the
// arithmetic that remains. A value in one piece, in a register or in memory, is read like any other. A value in several
// pieces is assembled in our memory.

namespace {

using Code = types::LocationOp::Code;
using PieceKind = types::LocationPiece::Kind;

std::optional<Op> binary_op(Code code) {
  switch (code) {
    case Code::kAdd: return Op::k_add;
    case Code::kSub: return Op::k_sub;
    case Code::kMul: return Op::k_mul;
    case Code::kDivSigned: return Op::k_sdiv;
    case Code::kDivUnsigned: return Op::k_udiv;
    case Code::kMod: return Op::k_umod;
    case Code::kAnd: return Op::k_and;
    case Code::kOr: return Op::k_or;
    case Code::kXor: return Op::k_xor;
    case Code::kShl: return Op::k_shl;
    case Code::kShr: return Op::k_shr;
    case Code::kSar: return Op::k_sar;
    case Code::kEqual: return Op::k_eq;
    case Code::kNotEqual: return Op::k_ne;
    case Code::kLessSigned: return Op::k_slt;
    case Code::kLessUnsigned: return Op::k_ult;
    default: return std::nullopt;
  }
}

ValueId pop(std::vector<ValueId>& stack) {
  CHECK(!stack.empty());  // `symbols` has checked the operations
  const ValueId out = stack.back();
  stack.pop_back();
  return out;
}

}  // namespace

Operand Lowering::value_at_location(const spec::ContextField& field) {
  const types::Type layout = types()[module_.complete(field.type)];
  const std::vector<types::LocationPiece>& pieces = field.recipe.place.pieces;
  const bool is_reference = types::is_by_reference(layout);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kMemory)
    return read_typed(evaluate_location(pieces[0], pieces[0].steps), 0, field.type, AddressSpace::kUser);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kValue && !is_reference)
    return {field.type, extend(evaluate_location(pieces[0], pieces[0].steps), static_cast<uint8_t>(layout.size_bytes),
                               layout.is_signed)};
  const ValueId address = assemble_pieces(pieces, layout.size_bytes);
  return is_reference ? Operand{field.type, address, true} : load(address, field.type);
}

// The value that the operations leave on top of the stack.
ValueId Lowering::evaluate_location(const types::LocationPiece& piece, const std::vector<types::LocationOp>& ops) {
  LocationStack stack;
  for (const types::LocationOp& op : ops) apply_location_op(piece, op, stack);
  return pop(stack);
}

void Lowering::apply_location_op(const types::LocationPiece& piece, const types::LocationOp& op, LocationStack& stack) {
  switch (op.op) {
    case Code::kRegister: return stack.push_back(saved_register(op.operand));
    case Code::kConstant: return stack.push_back(ir().constant(op.operand));
    case Code::kThreadPointer: return stack.push_back(current_task_field(kernel().arch().thread_pointer));
    case Code::kLoadBias: {
      const ValueId instruction = saved_register(kernel().arch().instruction_pointer_offset);
      return stack.push_back(ir().binary(Op::k_sub, instruction, op.operand));
    }
    case Code::kPick: return stack.push_back(stack[stack.size() - 1 - static_cast<size_t>(op.operand)]);
    case Code::kSwap: return std::swap(stack[stack.size() - 1], stack[stack.size() - 2]);
    case Code::kRotate: std::rotate(stack.end() - 3, stack.end() - 1, stack.end()); return;
    default: return apply_to_top(piece, op, stack);
  }
}

// Operations that pop their operands.
void Lowering::apply_to_top(const types::LocationPiece& piece, const types::LocationOp& op, LocationStack& stack) {
  const ValueId top = pop(stack);
  const auto size = static_cast<uint8_t>(op.operand);
  switch (op.op) {
    case Code::kDrop: return;
    case Code::kRead: return stack.push_back(read_scalar(top, 0, size, false, AddressSpace::kUser, {}));
    case Code::kReturnAddress: return stack.push_back(return_address(top, pop(stack)));
    case Code::kByCaller:
      return stack.push_back(value_by_caller(piece, piece.callers[static_cast<size_t>(op.operand)], top));
    case Code::kExtendSign: return stack.push_back(extend(top, size, true));
    case Code::kExtendZero: return stack.push_back(extend(top, size, false));
    case Code::kNeg: return stack.push_back(ir().unary(Op::k_neg, top));
    case Code::kNot: return stack.push_back(ir().unary(Op::k_not, top));
    default: return stack.push_back(ir().binary(*binary_op(op.op), pop(stack), top));
  }
}

ValueId Lowering::saved_register(int64_t offset_bytes) {
  return ir().load(8, ir().context(), *context_.registers_offset_bytes + offset_bytes);
}

// While a uretprobe is active on the function, it returns to a trampoline. The kernel keeps the original address in the
// task's list of return_instance, the latest first, with the stack pointer at the function's entry.
ValueId Lowering::return_address(ValueId stored, ValueId stack_pointer) {
  const TypeId type = kernel().find_struct(types(), "return_instance");
  if (!type) return stored;
  module_.complete(type);
  const auto stack = types::find_member(types(), type, "stack");
  const auto original = types::find_member(types(), type, "orig_ret_vaddr");
  if (!stack || !original) return stored;
  const ValueId latest = current_task_field({"utask", "return_instances"});
  const auto member = [&](const types::FoundMember& found) {
    return read_scalar(latest, found.offset_bits / 8, 8, false, AddressSpace::kKernel, type);
  };
  const auto as_stored = [&] { return stored; };
  const auto if_its_own = [&] {
    return select(
        Condition::eq, member(*stack), stack_pointer, [&] { return member(*original); }, as_stored);
  };
  const auto if_hidden = [&] {
    const ValueId trampoline = current_task_field({"mm", "uprobes_state", "xol_area", "vaddr"});
    return select(Condition::eq, stored, trampoline, if_its_own, as_stored);
  };
  return select(Condition::ne, latest, ir().constant(0), if_hidden, as_stored);
}

// Compares the return address with those of the known callers. The value for an unknown caller is 0, counted as a loss.
ValueId Lowering::value_by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                                  ValueId return_address) {
  if (callers.empty()) {
    count_loss(program::LossKind::kRead,
               "argument(s) read as 0: only the caller has the value, and its debug information does not describe it");
    return ir().constant(0);
  }
  const types::CallSite& first = callers.front();
  return select(
      Condition::eq, return_address, ir().constant(static_cast<int64_t>(first.return_address)),
      [&] { return evaluate_location(piece, first.steps); },
      [&] { return value_by_caller(piece, callers.subspan(1), return_address); });
}

// Returns the address of the concatenated pieces.
ValueId Lowering::assemble_pieces(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes) {
  const ValueId out = zeroed_memory(size_bytes, "pieces");
  uint32_t at = 0;
  for (const types::LocationPiece& piece : pieces) {
    const uint32_t size = std::min(piece.size_bytes == 0 ? size_bytes : piece.size_bytes, size_bytes - at);
    if (size == 0) break;
    switch (piece.kind) {
      case PieceKind::kNothing: break;
      case PieceKind::kMemory:
        read(offset(out, at), size, evaluate_location(piece, piece.steps), AddressSpace::kUser);
        break;
      case PieceKind::kBytes:
        copy(offset(out, at), constant_bytes(piece.bytes.substr(0, size)),
             std::min(size, static_cast<uint32_t>(piece.bytes.size())));
        break;
      case PieceKind::kValue: store_bytes(out, at, evaluate_location(piece, piece.steps), std::min(size, 8u)); break;
    }
    at += size;
  }
  return out;
}

// Stores the low `size_bytes` of `value` by aligned stores.
void Lowering::store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes) {
  for (uint32_t done = 0; done < size_bytes;) {
    uint32_t width = std::bit_floor(std::min(size_bytes - done, 8u));
    while ((offset_bytes + done) % width != 0) width /= 2;
    const ValueId rest = done == 0 ? value : ir().binary(Op::k_shr, value, done * 8);
    ir().store(static_cast<uint8_t>(width), base, rest, offset_bytes + done);
    done += width;
  }
}

}  // namespace espy::lower
