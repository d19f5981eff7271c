#include "opt/evaluate.h"

#include "ir/conditions.h"

namespace espy::opt {

using ir::Condition;
using ir::Op;

namespace {

// Division by zero yields 0. INT64_MIN / -1, the only quotient that overflows, wraps as in the kernel.
int64_t signed_quotient(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b;
}

int64_t signed_remainder(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

std::optional<int64_t> unary(Op op, int64_t a) {
  uint64_t bits = static_cast<uint64_t>(a);
  switch (op) {
    case Op::k_neg: return static_cast<int64_t>(-bits);
    case Op::k_not: return ~a;
    case Op::k_opaque: return a;
    case Op::k_zext8: return static_cast<uint8_t>(a);
    case Op::k_zext16: return static_cast<uint16_t>(a);
    case Op::k_zext32: return static_cast<uint32_t>(a);
    case Op::k_sext8: return static_cast<int8_t>(a);
    case Op::k_sext16: return static_cast<int16_t>(a);
    case Op::k_sext32: return static_cast<int32_t>(a);
    case Op::k_bswap16: return __builtin_bswap16(static_cast<uint16_t>(bits));
    case Op::k_bswap32: return __builtin_bswap32(static_cast<uint32_t>(bits));
    case Op::k_bswap64: return static_cast<int64_t>(__builtin_bswap64(bits));
    default: return {};
  }
}

}  // namespace

std::optional<int64_t> evaluate(Op op, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::k_add: return static_cast<int64_t>(x + y);
    case Op::k_sub: return static_cast<int64_t>(x - y);
    case Op::k_mul: return static_cast<int64_t>(x * y);
    case Op::k_udiv: return static_cast<int64_t>(y ? x / y : 0);
    case Op::k_umod: return static_cast<int64_t>(y ? x % y : 0);
    case Op::k_sdiv: return signed_quotient(a, b);
    case Op::k_smod: return signed_remainder(a, b);
    case Op::k_and: return a & b;
    case Op::k_or: return a | b;
    case Op::k_xor: return a ^ b;
    case Op::k_shl: return static_cast<int64_t>(x << (y & 63));
    case Op::k_shr: return static_cast<int64_t>(x >> (y & 63));
    case Op::k_sar: return a >> (y & 63);
    default: break;
  }
  if (is_comparison(op)) return evaluate(as_condition(op), a, b);
  return unary(op, a);
}

bool evaluate(Condition condition, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (condition) {
    case Condition::eq: return a == b;
    case Condition::ne: return a != b;
    case Condition::ult: return x < y;
    case Condition::ule: return x <= y;
    case Condition::ugt: return x > y;
    case Condition::uge: return x >= y;
    case Condition::slt: return a < b;
    case Condition::sle: return a <= b;
    case Condition::sgt: return a > b;
    case Condition::sge: return a >= b;
    case Condition::test: return (a & b) != 0;
  }
  UNREACHABLE("condition");
}

bool is_comparison(Op op) { return op >= Op::k_eq && op <= Op::k_sle; }

bool is_commutative(Op op) {
  switch (op) {
    case Op::k_add:
    case Op::k_mul:
    case Op::k_and:
    case Op::k_or:
    case Op::k_xor:
    case Op::k_eq:
    case Op::k_ne: return true;
    default: return false;
  }
}

}  // namespace espy::opt
