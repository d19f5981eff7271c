// Tokens of the language.
//
// A token is a kind and a position; its text stays in the source. Keywords are identifiers, since each of them can also
// name a member (`args.return`); the parser distinguishes them by context.
#pragma once

#include <cstdint>

namespace espy::syntax {

enum class TokenKind : uint8_t {
  kEnd,
  kIdentifier,
  kInteger,  // a digit and every letter, digit and `_` after it: 10ms, 0xff, 2e3, 1ull
  kString,   // with its quotes
  kUnterminatedString,
  kCharacter,  // 'a': only in C constants
  kVariable,   // $x
  kMap,        // @x, @
  kPositional,
  kPositionalCount,
  kUnterminatedComment,
  kUnknown,
  kHash,
  kLeftParen,
  kRightParen,
  kLeftBracket,
  kRightBracket,
  kLeftBrace,
  kRightBrace,
  kComma,
  kSemicolon,
  kColon,
  kQuestion,
  kDot,
  kDotDot,
  kEllipsis,
  kArrow,
  kNot,
  kBitNot,
  kIncrement,
  kDecrement,
  kPlus,
  kMinus,
  kStar,
  kSlash,
  kPercent,
  kAmpersand,
  kPipe,
  kCaret,
  kShiftLeft,
  kShiftRight,
  kLogicalAnd,
  kLogicalOr,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAssign,
  kPlusAssign,
  kMinusAssign,
  kStarAssign,
  kSlashAssign,
  kPercentAssign,
  kAmpersandAssign,
  kPipeAssign,
  kCaretAssign,
  kShiftLeftAssign,
  kShiftRightAssign,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool after_newline = false;  // the first token on its line
  uint32_t begin = 0;
  uint32_t end = 0;
};

}  // namespace espy::syntax
