#include "check/fold_constants.h"

namespace espy::check {

using syntax::BinaryOp;
using syntax::UnaryOp;

namespace {

__extension__ using Wide = __int128;  // holds the sum and difference of any two 64-bit numbers

int compare(Number a, Number b) {
  // A negative number is less than every unsigned one.
  const bool a_negative = !a.is_unsigned && a.bits < 0;
  const bool b_negative = !b.is_unsigned && b.bits < 0;
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  if (a_negative) return a.bits < b.bits ? -1 : a.bits > b.bits;
  return a.as_unsigned() < b.as_unsigned() ? -1 : a.as_unsigned() > b.as_unsigned();
}

// nullopt if the exact result does not fit 64 bits.
std::optional<Number> narrow(Wide value) {
  if (value >= INT64_MIN && value <= INT64_MAX) return Number{static_cast<int64_t>(value), false};
  if (value > 0 && value <= UINT64_MAX) return Number{static_cast<int64_t>(static_cast<uint64_t>(value)), true};
  return std::nullopt;
}

Wide widen(Number a) { return a.is_unsigned ? static_cast<Wide>(a.as_unsigned()) : a.bits; }

std::optional<Number> shift(BinaryOp op, Number a, Number b) {
  const unsigned count = static_cast<unsigned>(b.bits) & 63;
  if (op == BinaryOp::kShiftLeft) return Number{static_cast<int64_t>(a.as_unsigned() << count), a.is_unsigned};
  if (a.is_unsigned) return Number{static_cast<int64_t>(a.as_unsigned() >> count), true};
  return Number{a.bits >> count, false};
}

}  // namespace

bool is_comparison(BinaryOp op) { return op >= BinaryOp::kEqual && op <= BinaryOp::kGreaterEqual; }
bool is_logical(BinaryOp op) { return op == BinaryOp::kLogicalAnd || op == BinaryOp::kLogicalOr; }

std::optional<Number> fold_binary(BinaryOp op, Number a, Number b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  switch (op) {
    case BinaryOp::kLogicalOr: return Number{a.bits || b.bits};
    case BinaryOp::kLogicalAnd: return Number{a.bits && b.bits};
    case BinaryOp::kBitOr: return Number{a.bits | b.bits, is_unsigned};
    case BinaryOp::kBitXor: return Number{a.bits ^ b.bits, is_unsigned};
    case BinaryOp::kBitAnd: return Number{a.bits & b.bits, is_unsigned && (a.bits & b.bits) < 0};
    case BinaryOp::kEqual: return Number{compare(a, b) == 0};
    case BinaryOp::kNotEqual: return Number{compare(a, b) != 0};
    case BinaryOp::kLess: return Number{compare(a, b) < 0};
    case BinaryOp::kLessEqual: return Number{compare(a, b) <= 0};
    case BinaryOp::kGreater: return Number{compare(a, b) > 0};
    case BinaryOp::kGreaterEqual: return Number{compare(a, b) >= 0};
    case BinaryOp::kShiftLeft:
    case BinaryOp::kShiftRight: return shift(op, a, b);
    case BinaryOp::kAdd: return narrow(widen(a) + widen(b));
    case BinaryOp::kSubtract: return narrow(widen(a) - widen(b));
    case BinaryOp::kMultiply: {
      Wide product = 0;
      if (__builtin_mul_overflow(widen(a), widen(b), &product)) return std::nullopt;
      return narrow(product);
    }
    case BinaryOp::kDivide: return b.bits == 0 ? std::nullopt : narrow(widen(a) / widen(b));
    case BinaryOp::kModulo: return b.bits == 0 ? std::nullopt : narrow(widen(a) % widen(b));
  }
  return std::nullopt;
}

std::optional<Number> fold_unary(UnaryOp op, Number a) {
  switch (op) {
    case UnaryOp::kNot: return Number{a.bits == 0};
    case UnaryOp::kBitNot: return Number{~a.bits, a.is_unsigned};
    case UnaryOp::kNegate: return narrow(-widen(a));
    default: return std::nullopt;
  }
}

int64_t truncate(const types::Type& type, int64_t bits) {
  if (type.kind == types::Kind::kBool) return bits != 0;
  if (type.size_bytes >= 8 || type.size_bytes == 0) return bits;
  const unsigned shift = 64 - type.size_bytes * 8;
  const uint64_t moved = static_cast<uint64_t>(bits) << shift;
  return type.is_signed ? static_cast<int64_t>(moved) >> shift : static_cast<int64_t>(moved >> shift);
}

}  // namespace espy::check
