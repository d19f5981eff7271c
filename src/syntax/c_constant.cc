#include "syntax/c_constant.h"

#include <array>
#include <string>
#include <utility>

#include "syntax/lexer.h"
#include "syntax/literal.h"

namespace espy::syntax {

namespace {

using MaybeInt = std::optional<int64_t>;

int precedence(TokenKind kind) {
  switch (kind) {
    case TokenKind::kLogicalOr: return 1;
    case TokenKind::kLogicalAnd: return 2;
    case TokenKind::kPipe: return 3;
    case TokenKind::kCaret: return 4;
    case TokenKind::kAmpersand: return 5;
    case TokenKind::kEqual:
    case TokenKind::kNotEqual: return 6;
    case TokenKind::kLess:
    case TokenKind::kLessEqual:
    case TokenKind::kGreater:
    case TokenKind::kGreaterEqual: return 7;
    case TokenKind::kShiftLeft:
    case TokenKind::kShiftRight: return 8;
    case TokenKind::kPlus:
    case TokenKind::kMinus: return 9;
    case TokenKind::kStar:
    case TokenKind::kSlash:
    case TokenKind::kPercent: return 10;
    default: return 0;
  }
}

// In two's complement and without undefined behaviour, whatever the operands.
MaybeInt apply(TokenKind op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  switch (op) {
    case TokenKind::kLogicalOr: return (a != 0) || (b != 0);
    case TokenKind::kLogicalAnd: return (a != 0) && (b != 0);
    case TokenKind::kPipe: return a | b;
    case TokenKind::kCaret: return a ^ b;
    case TokenKind::kAmpersand: return a & b;
    case TokenKind::kEqual: return a == b;
    case TokenKind::kNotEqual: return a != b;
    case TokenKind::kLess: return a < b;
    case TokenKind::kLessEqual: return a <= b;
    case TokenKind::kGreater: return a > b;
    case TokenKind::kGreaterEqual: return a >= b;
    case TokenKind::kShiftLeft: return static_cast<int64_t>(ua << (ub & 63));
    case TokenKind::kShiftRight: return a >> (ub & 63);
    case TokenKind::kPlus: return static_cast<int64_t>(ua + ub);
    case TokenKind::kMinus: return static_cast<int64_t>(ua - ub);
    case TokenKind::kStar: return static_cast<int64_t>(ua * ub);
    case TokenKind::kSlash: return b == 0 ? MaybeInt() : b == -1 ? static_cast<int64_t>(0 - ua) : a / b;
    case TokenKind::kPercent: return b == 0 ? MaybeInt() : b == -1 ? 0 : a % b;
    default: return std::nullopt;
  }
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const ConstantScope& scope)
      : text_(text), scope_(scope), lexer_(text), token_(lexer_.next()) {}

  MaybeInt whole() {
    const MaybeInt out = ternary();
    return token_.kind == TokenKind::kEnd ? out : std::nullopt;
  }

 private:
  static constexpr int kMaxDepth = 100;

  std::string_view word() const { return text_.substr(token_.begin, token_.end - token_.begin); }
  void advance() { token_ = lexer_.next(); }
  bool accept(TokenKind kind) {
    if (token_.kind != kind) return false;
    advance();
    return true;
  }

  MaybeInt ternary() {
    if (depth_ > kMaxDepth) return std::nullopt;
    ++depth_;
    MaybeInt out = binary(1);
    if (accept(TokenKind::kQuestion)) {
      const MaybeInt yes = ternary();
      const bool colon = accept(TokenKind::kColon);
      const MaybeInt no = ternary();
      out = !out || !colon ? std::nullopt : *out != 0 ? yes : no;
    }
    --depth_;
    return out;
  }

  MaybeInt binary(int lowest) {
    MaybeInt left = unary();
    while (precedence(token_.kind) >= lowest && precedence(token_.kind) > 0) {
      const TokenKind op = token_.kind;
      advance();
      const MaybeInt right = binary(precedence(op) + 1);
      left = left && right ? apply(op, *left, *right) : std::nullopt;
    }
    return left;
  }

  MaybeInt unary() {
    if (depth_ > kMaxDepth) return std::nullopt;
    ++depth_;
    const MaybeInt out = unary_operand();
    --depth_;
    return out;
  }

  MaybeInt unary_operand() {
    const TokenKind kind = token_.kind;
    switch (kind) {
      case TokenKind::kMinus:
      case TokenKind::kPlus:
      case TokenKind::kNot:
      case TokenKind::kBitNot: {
        advance();
        const MaybeInt v = unary();
        if (!v) return v;
        if (kind == TokenKind::kMinus) return apply(TokenKind::kMinus, 0, *v);
        return kind == TokenKind::kNot ? MaybeInt(*v == 0) : kind == TokenKind::kBitNot ? ~*v : *v;
      }
      case TokenKind::kLeftParen: {
        advance();
        const MaybeInt v = ternary();
        return accept(TokenKind::kRightParen) ? v : std::nullopt;
      }
      case TokenKind::kInteger: {
        const IntegerValue v = read_integer(word());
        advance();
        if (v.problem != IntegerValue::Problem::kNone) return std::nullopt;
        return static_cast<int64_t>(v.value);
      }
      case TokenKind::kCharacter: return character();
      case TokenKind::kIdentifier: return name();
      default: return std::nullopt;
    }
  }

  MaybeInt character() {
    const StringValue v = read_string(word().substr(1, word().size() - 2));
    advance();
    return v.value.size() == 1 ? MaybeInt(static_cast<signed char>(v.value[0])) : std::nullopt;
  }

  MaybeInt name() {
    const std::string_view text = word();
    advance();
    if (text == "sizeof") return size_of();
    if (text != "defined" || !scope_.is_defined) return scope_.value(text);
    const bool paren = accept(TokenKind::kLeftParen);
    if (token_.kind != TokenKind::kIdentifier) return std::nullopt;
    const bool out = scope_.is_defined(word());
    advance();
    if (paren && !accept(TokenKind::kRightParen)) return std::nullopt;
    return out;
  }

  // sizeof(basic type) and sizeof(T *); a long is as long as a pointer.
  MaybeInt size_of() {
    if (!accept(TokenKind::kLeftParen)) return std::nullopt;
    constexpr std::pair<std::string_view, int64_t> kSizes[] = {
        {"char", 1},    {"short", 2},    {"int", 4},      {"long", 8},     {"unsigned", 4}, {"signed", 4},
        {"u8", 1},      {"u16", 2},      {"u32", 4},      {"u64", 8},      {"s8", 1},       {"s16", 2},
        {"s32", 4},     {"s64", 8},      {"__u8", 1},     {"__u16", 2},    {"__u32", 4},    {"__u64", 8},
        {"uint8_t", 1}, {"uint16_t", 2}, {"uint32_t", 4}, {"uint64_t", 8}, {"int8_t", 1},   {"int16_t", 2},
        {"int32_t", 4}, {"int64_t", 8},  {"size_t", 8},   {"pid_t", 4},
    };
    MaybeInt size;
    bool named_size = false;  // by a word other than int, signed, unsigned, which give way to it
    for (; token_.kind == TokenKind::kIdentifier || token_.kind == TokenKind::kStar; advance()) {
      if (token_.kind == TokenKind::kStar) size = 8, named_size = true;
      for (const auto& [type, bytes] : kSizes) {
        if (word() != type || named_size) continue;
        size = bytes;
        named_size = type != "unsigned" && type != "signed" && type != "int";
      }
    }
    return accept(TokenKind::kRightParen) ? size : std::nullopt;
  }

  std::string_view text_;
  const ConstantScope& scope_;
  Lexer lexer_;
  Token token_;
  int depth_ = 0;
};

}  // namespace

std::optional<int64_t> evaluate_constant(std::string_view text, const ConstantScope& scope) {
  return Evaluator(text, scope).whole();
}

}  // namespace espy::syntax
