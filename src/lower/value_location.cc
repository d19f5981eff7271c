// Values of a probed program where debug information says they lie: types/value_location.h.
//
// The steps are run here, over values that the program will compute: what is a stack for whoever wrote them is gone in
// the code. A value in one piece, in a register or in memory, is read like any other. One in several is put together in
// our own memory.
#include <algorithm>
#include <bit>
#include <utility>

#include "lower/unit.h"

namespace espy::lower {

namespace {

using PlaceOp = types::LocationOp::Code;
using PieceKind = types::LocationPiece::Kind;

std::optional<Op> operation_of(PlaceOp op) {
  switch (op) {
    case PlaceOp::kAdd: return Op::k_add;
    case PlaceOp::kSub: return Op::k_sub;
    case PlaceOp::kMul: return Op::k_mul;
    case PlaceOp::kDivSigned: return Op::k_sdiv;
    case PlaceOp::kDivUnsigned: return Op::k_udiv;
    case PlaceOp::kMod: return Op::k_umod;
    case PlaceOp::kAnd: return Op::k_and;
    case PlaceOp::kOr: return Op::k_or;
    case PlaceOp::kXor: return Op::k_xor;
    case PlaceOp::kShl: return Op::k_shl;
    case PlaceOp::kShr: return Op::k_shr;
    case PlaceOp::kSar: return Op::k_sar;
    case PlaceOp::kEqual: return Op::k_eq;
    case PlaceOp::kNotEqual: return Op::k_ne;
    case PlaceOp::kLessSigned: return Op::k_slt;
    case PlaceOp::kLessUnsigned: return Op::k_ult;
    default: return std::nullopt;
  }
}

}  // namespace

// What the steps leave on top. `symbols` made them: the stack never runs dry.
ValueId UnitLowering::follow(const types::LocationPiece& piece, const std::vector<types::LocationOp>& steps) {
  std::vector<ValueId> stack;
  const auto pop = [&] {
    CHECK(!stack.empty());
    const ValueId out = stack.back();
    stack.pop_back();
    return out;
  };
  const auto saved = [&](int64_t offset_bytes) {
    return ir().load(8, ir().context(), *main_unit_.context.registers_offset_bytes + offset_bytes);
  };
  for (const types::LocationOp& step : steps) {
    switch (step.op) {
      case PlaceOp::kRegister: stack.push_back(saved(step.operand)); break;
      case PlaceOp::kConstant: stack.push_back(ir().constant(step.operand)); break;
      case PlaceOp::kThreadPointer: stack.push_back(current_task_field(kernel().arch().thread_pointer)); break;
      case PlaceOp::kLoadBias:
        stack.push_back(ir().binary(Op::k_sub, saved(kernel().arch().instruction_pointer_offset), step.operand));
        break;
      case PlaceOp::kRead:
        stack.push_back(read_scalar(pop(), 0, static_cast<uint8_t>(step.operand), false, AddressSpace::kUser, {}));
        break;
      case PlaceOp::kPick: stack.push_back(stack[stack.size() - 1 - static_cast<size_t>(step.operand)]); break;
      case PlaceOp::kDrop: pop(); break;
      case PlaceOp::kSwap: std::swap(stack[stack.size() - 1], stack[stack.size() - 2]); break;
      case PlaceOp::kRotate: std::rotate(stack.end() - 3, stack.end() - 1, stack.end()); break;
      case PlaceOp::kReturnAddress: stack.push_back(return_address(pop())); break;
      case PlaceOp::kByCaller:
        stack.push_back(by_caller(piece, piece.callers[static_cast<size_t>(step.operand)], pop()));
        break;
      case PlaceOp::kExtendSign: stack.push_back(extend(pop(), static_cast<uint8_t>(step.operand), true)); break;
      case PlaceOp::kExtendZero: stack.push_back(extend(pop(), static_cast<uint8_t>(step.operand), false)); break;
      case PlaceOp::kNeg: stack.push_back(ir().unary(Op::k_neg, pop())); break;
      case PlaceOp::kNot: stack.push_back(ir().unary(Op::k_not, pop())); break;
      default: {
        const ValueId right = pop();
        const ValueId left = pop();
        stack.push_back(ir().binary(*operation_of(step.op), left, right));
      }
    }
  }
  return pop();
}

// Where somebody traces the function's return, the kernel has put the address of a trampoline there, and keeps the one
// that was there in a list, the latest first.
ValueId UnitLowering::return_address(ValueId slot) {
  const ValueId seen = read_scalar(slot, 0, 8, false, AddressSpace::kUser, {});
  const TypeId type = kernel().find_struct(types(), "return_instance");
  if (!type) return seen;
  kernel().complete(types(), type);
  const auto stack = types::find_member(types(), type, "stack");
  const auto original = types::find_member(types(), type, "orig_ret_vaddr");
  if (!stack || !original) return seen;
  const ValueId latest = current_task_field({"utask", "return_instances"});
  const auto member = [&](const types::FoundMember& found) {
    return read_scalar(latest, found.offset_bits / 8, 8, false, AddressSpace::kKernel, type);
  };
  const auto as_seen = [&] { return seen; };
  const auto if_its_own = [&] {
    return select(
        ir::Condition::eq, member(*stack), slot, [&] { return member(*original); }, as_seen);
  };
  const auto if_hidden = [&] {
    const ValueId trampoline = current_task_field({"mm", "uprobes_state", "xol_area", "vaddr"});
    return select(ir::Condition::eq, seen, trampoline, if_its_own, as_seen);
  };
  return select(ir::Condition::ne, latest, ir().constant(0), if_hidden, as_seen);
}

// Callers are tried one after the other. Of any other nothing is known, and nothing is made up.
ValueId UnitLowering::by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                                ValueId return_address) {
  if (callers.empty()) {
    count_loss(program::LossKind::kRead, "arguments that only the caller could tell, and it did not, were read as 0");
    return ir().constant(0);
  }
  const types::CallSite& first = callers.front();
  return select(
      ir::Condition::eq, return_address, ir().constant(static_cast<int64_t>(first.return_address)),
      [&] { return follow(piece, first.steps); }, [&] { return by_caller(piece, callers.subspan(1), return_address); });
}

Operand UnitLowering::placed(const spec::ContextField& field) {
  const types::Type layout = types()[complete(field.type)];
  const std::vector<types::LocationPiece>& pieces = field.recipe.place.pieces;
  const bool is_reference = types::is_by_reference(layout);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kMemory)
    return at(follow(pieces[0], pieces[0].steps), 0, field.type, AddressSpace::kUser);
  if (pieces.size() == 1 && pieces[0].kind == PieceKind::kValue && !is_reference)
    return {field.type,
            extend(follow(pieces[0], pieces[0].steps), static_cast<uint8_t>(layout.size_bytes), layout.is_signed)};
  const ValueId address = assembled(pieces, layout.size_bytes);
  return is_reference ? Operand{field.type, address, true} : load(address, field.type);
}

// The pieces, one behind the other, in memory of our own.
ValueId UnitLowering::assembled(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes) {
  const ValueId out = memory(size_bytes, "pieces");
  zero(out, size_bytes);
  uint32_t at = 0;
  for (const types::LocationPiece& piece : pieces) {
    const uint32_t size = std::min(piece.size_bytes == 0 ? size_bytes : piece.size_bytes, size_bytes - at);
    if (size == 0) break;
    switch (piece.kind) {
      case PieceKind::kNothing: break;
      case PieceKind::kMemory: read(offset(out, at), size, follow(piece, piece.steps), AddressSpace::kUser); break;
      case PieceKind::kBytes:
        copy(offset(out, at), constant_bytes(piece.bytes.substr(0, size)),
             std::min(size, static_cast<uint32_t>(piece.bytes.size())));
        break;
      case PieceKind::kValue: store_bytes(out, at, follow(piece, piece.steps), std::min(size, 8u)); break;
    }
    at += size;
  }
  return out;
}

// The low `size_bytes` of `value`, in steps that are aligned.
void UnitLowering::store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes) {
  for (uint32_t done = 0; done < size_bytes;) {
    uint32_t width = std::bit_floor(std::min(size_bytes - done, 8u));
    while ((offset_bytes + done) % width != 0) width /= 2;
    const ValueId rest = done == 0 ? value : ir().binary(Op::k_shr, value, done * 8);
    ir().store(static_cast<uint8_t>(width), base, rest, offset_bytes + done);
    done += width;
  }
}

}  // namespace espy::lower
