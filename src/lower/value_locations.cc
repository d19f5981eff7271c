#include "lower/value_locations.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace espy::lower {
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

ValueId ValueLocations::saved_register(int64_t offset_bytes) {
  return ir().load(8, ir().context(), *context_.registers_offset_bytes + offset_bytes);
}

// The value that the operations leave on top of the stack.
ValueId ValueLocations::evaluate(const types::LocationPiece& piece, const std::vector<types::LocationOp>& ops) {
  Stack stack;
  for (const types::LocationOp& op : ops) apply(piece, op, stack);
  return pop(stack);
}

void ValueLocations::apply(const types::LocationPiece& piece, const types::LocationOp& op, Stack& stack) {
  switch (op.op) {
    case Code::kRegister: return stack.push_back(saved_register(op.operand));
    case Code::kConstant: return stack.push_back(ir().constant(op.operand));
    case Code::kThreadPointer: return stack.push_back(reads_.current_task_field(kernel().arch().thread_pointer));
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
void ValueLocations::apply_to_top(const types::LocationPiece& piece, const types::LocationOp& op, Stack& stack) {
  const ValueId top = pop(stack);
  const auto size = static_cast<uint8_t>(op.operand);
  switch (op.op) {
    case Code::kDrop: return;
    case Code::kRead: return stack.push_back(reads_.read_scalar(top, 0, size, false, AddressSpace::kUser, {}));
    case Code::kReturnAddress: return stack.push_back(return_address(top, pop(stack)));
    case Code::kByCaller: return stack.push_back(by_caller(piece, piece.callers[static_cast<size_t>(op.operand)], top));
    case Code::kExtendSign: return stack.push_back(extend(top, size, true));
    case Code::kExtendZero: return stack.push_back(extend(top, size, false));
    case Code::kNeg: return stack.push_back(ir().unary(Op::k_neg, top));
    case Code::kNot: return stack.push_back(ir().unary(Op::k_not, top));
    default: return stack.push_back(ir().binary(*binary_op(op.op), pop(stack), top));
  }
}

// While a uretprobe is active on the function, it returns to a trampoline. The kernel keeps the original address in the
// task's list of return_instance, the latest first, with the stack pointer at the function's entry.
ValueId ValueLocations::return_address(ValueId stored, ValueId stack_pointer) {
  const TypeId type = kernel().find_struct(types(), "return_instance");
  if (!type) return stored;
  module_.complete(type);
  const auto stack = types::find_member(types(), type, "stack");
  const auto original = types::find_member(types(), type, "orig_ret_vaddr");
  if (!stack || !original) return stored;
  const ValueId latest = reads_.current_task_field({"utask", "return_instances"});
  const auto member = [&](const types::FoundMember& found) {
    return reads_.read_scalar(latest, found.offset_bits / 8, 8, false, AddressSpace::kKernel, type);
  };
  const auto as_stored = [&] { return stored; };
  const auto if_its_own = [&] {
    return select(
        Condition::eq, member(*stack), stack_pointer, [&] { return member(*original); }, as_stored);
  };
  const auto if_hidden = [&] {
    const ValueId trampoline = reads_.current_task_field({"mm", "uprobes_state", "xol_area", "vaddr"});
    return select(Condition::eq, stored, trampoline, if_its_own, as_stored);
  };
  return select(Condition::ne, latest, ir().constant(0), if_hidden, as_stored);
}

// Compares the return address with those of the known callers. The value for an unknown caller is 0, counted as a loss.
ValueId ValueLocations::by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                                  ValueId return_address) {
  if (callers.empty()) {
    count_loss(program::LossKind::kRead, "arguments that only the caller could tell, and it did not, were read as 0");
    return ir().constant(0);
  }
  const types::CallSite& first = callers.front();
  return select(
      Condition::eq, return_address, ir().constant(static_cast<int64_t>(first.return_address)),
      [&] { return evaluate(piece, first.steps); },
      [&] { return by_caller(piece, callers.subspan(1), return_address); });
}

Operand ValueLocations::read(const spec::ContextField& field) {
  const types::Type layout = types()[module_.complete(field.type)];
  const std::vector<types::LocationPiece>& pieces = field.recipe.place.pieces;
  const bool is_reference = types::is_by_reference(layout);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kMemory)
    return reads_.typed(evaluate(pieces[0], pieces[0].steps), 0, field.type, AddressSpace::kUser);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kValue && !is_reference)
    return {field.type,
            extend(evaluate(pieces[0], pieces[0].steps), static_cast<uint8_t>(layout.size_bytes), layout.is_signed)};
  const ValueId address = assemble(pieces, layout.size_bytes);
  return is_reference ? Operand{field.type, address, true} : memory_.load(address, field.type);
}

// Returns the address of the concatenated pieces.
ValueId ValueLocations::assemble(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes) {
  const ValueId out = memory_.allocate(size_bytes, "pieces");
  memory_.zero(out, size_bytes);
  uint32_t at = 0;
  for (const types::LocationPiece& piece : pieces) {
    const uint32_t size = std::min(piece.size_bytes == 0 ? size_bytes : piece.size_bytes, size_bytes - at);
    if (size == 0) break;
    switch (piece.kind) {
      case PieceKind::kNothing: break;
      case PieceKind::kMemory:
        reads_.read(offset(out, at), size, evaluate(piece, piece.steps), AddressSpace::kUser);
        break;
      case PieceKind::kBytes:
        memory_.copy(offset(out, at), memory_.constant_bytes(piece.bytes.substr(0, size)),
                     std::min(size, static_cast<uint32_t>(piece.bytes.size())));
        break;
      case PieceKind::kValue: store_bytes(out, at, evaluate(piece, piece.steps), std::min(size, 8u)); break;
    }
    at += size;
  }
  return out;
}

// Stores the low `size_bytes` of `value` by aligned stores.
void ValueLocations::store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes) {
  for (uint32_t done = 0; done < size_bytes;) {
    uint32_t width = std::bit_floor(std::min(size_bytes - done, 8u));
    while ((offset_bytes + done) % width != 0) width /= 2;
    const ValueId rest = done == 0 ? value : ir().binary(Op::k_shr, value, done * 8);
    ir().store(static_cast<uint8_t>(width), base, rest, offset_bytes + done);
    done += width;
  }
}

}  // namespace espy::lower
