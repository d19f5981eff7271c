// Type names, and the distinction of casts from parenthesised expressions.
//
// `(uint8)x` and `(x) + 1` begin alike, and a script may name types that only the kernel defines. Text in parentheses
// is a type if
//   1. it begins with struct, union, enum or typeof, or its name is a built-in type, a C type (int, u32, size_t), ends
//      in `_t` or is a typedef of the script, and something that can begin an operand follows: `(pid_t)-1`;
//   2. it is any name with `*` or `[...]` behind it, and an operand follows that no binary operator could be:
//      `(foo *)p`, but not `(a[1]) - 2`;
//   3. it is any bare name, and such an operand follows on the same line: `(foo)$x`. Nothing else it could mean,
//      except around a whole condition: `if (x) print(1)` lacks its braces.
#include <algorithm>

#include "syntax/parser_impl.h"

namespace espy::syntax {

namespace {

constexpr std::string_view kTypeWords[] = {
    "bool",   "int8",      "int16",  "int32", "int64", "uint8", "uint16", "uint32",   "uint64", "string", "buffer",
    "inet",   "timestamp", "void",   "u8",    "u16",   "u32",   "u64",    "s8",       "s16",    "s32",    "s64",
    "__u8",   "__u16",     "__u32",  "__u64", "__s8",  "__s16", "__s32",  "__s64",    "__be16", "__be32", "__be64",
    "__le16", "__le32",    "__le64", "char",  "short", "int",   "long",   "unsigned", "signed",
};

constexpr std::string_view kCWords[] = {"unsigned", "signed", "long", "short", "int", "char"};

bool is_c_word(std::string_view word) {
  return std::find(std::begin(kCWords), std::end(kCWords), word) != std::end(kCWords);
}

bool is_type_tag(std::string_view word) { return word == "struct" || word == "union" || word == "enum"; }
bool is_qualifier(std::string_view word) { return word == "const" || word == "volatile"; }

// Skips from the bracket `token` to the token after the one that closes it.
Token skip_brackets(Token token, Lexer& lexer) {
  int depth = 0;
  do {
    if (token.kind == TokenKind::kLeftParen || token.kind == TokenKind::kLeftBracket) ++depth;
    if (token.kind == TokenKind::kRightParen || token.kind == TokenKind::kRightBracket) --depth;
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kSemicolon) return token;
    token = lexer.next();
  } while (depth > 0);
  return token;
}

}  // namespace

bool TypeParser::spells_type(std::string_view word) const {
  if (std::find(std::begin(kTypeWords), std::end(kTypeWords), word) != std::end(kTypeWords)) return true;
  if (word.size() > 2 && word.ends_with("_t")) return true;
  return std::any_of(ast_.c_definitions.begin(), ast_.c_definitions.end(), [&](const CDefinition& definition) {
    const auto* type = std::get_if<CTypedef>(&definition);
    return type != nullptr && type->name == word;
  });
}

std::optional<TypeParser::TypeAhead> TypeParser::look_for_type(Token token, Lexer lexer) const {
  TypeAhead out{.lexer = lexer};
  const auto word = [&] { return token.kind == TokenKind::kIdentifier ? stream_.text(token) : std::string_view(); };
  while (is_qualifier(word())) token = lexer.next();
  if (word().empty()) return std::nullopt;
  if (is_type_tag(word())) {
    token = lexer.next();
    if (word().empty()) return std::nullopt;
    out.known = true;
    token = lexer.next();
    while (TokenStream::skip_qualified_part(token, lexer)) {
    }
  } else if (word() == "typeof") {
    token = lexer.next();
    if (token.kind != TokenKind::kLeftParen) return std::nullopt;
    out.known = true;
    token = skip_brackets(token, lexer);
  } else if (is_c_word(word())) {
    out.known = true;
    while (is_c_word(word())) token = lexer.next();
  } else {
    if (is_keyword(word())) return std::nullopt;
    out.known = spells_type(word());
    token = lexer.next();
    while (TokenStream::skip_qualified_part(token, lexer)) {
    }
  }
  while (token.kind == TokenKind::kStar || token.kind == TokenKind::kLeftBracket || is_qualifier(word())) {
    out.suffix |= token.kind != TokenKind::kIdentifier;
    token = token.kind == TokenKind::kLeftBracket ? skip_brackets(token, lexer) : lexer.next();
  }
  out.after = token;
  out.lexer = lexer;
  return out;
}

// Behind `((`: a list of types that are spelled like types, `))`, and an operand: `((int64, string[8]))$t`.
bool TypeParser::at_tuple_cast(Lexer lexer) const {
  TokenKind after = TokenKind::kComma;
  size_t count = 0;
  while (after == TokenKind::kComma) {
    const Token first = lexer.next();
    const std::optional<TypeAhead> element = look_for_type(first, lexer);
    if (!element || !element->known) return false;
    after = element->after.kind;
    lexer = element->lexer;
    ++count;
  }
  if (count < 2 || after != TokenKind::kRightParen || lexer.next().kind != TokenKind::kRightParen) return false;
  const TokenKind operand = lexer.next().kind;
  return operand == TokenKind::kLeftParen || operand == TokenKind::kVariable || operand == TokenKind::kMap;
}

// Returns true if the current `(` opens a cast, by the rules at the top of this file.
bool TypeParser::at_cast() const {
  Lexer lexer = stream_.lexer();
  const Token first = lexer.next();
  if (first.kind == TokenKind::kLeftParen) return at_tuple_cast(lexer);
  if (first.kind != TokenKind::kIdentifier) return false;
  std::optional<TypeAhead> type = look_for_type(first, lexer);
  if (!type || type->after.kind != TokenKind::kRightParen) return false;
  const Token operand = type->lexer.next();
  switch (operand.kind) {
    case TokenKind::kIdentifier:
    case TokenKind::kInteger:
    case TokenKind::kString:
    case TokenKind::kVariable:
    case TokenKind::kMap:
    case TokenKind::kPositional:
    case TokenKind::kPositionalCount:
    case TokenKind::kLeftParen:
      return type->known || type->suffix || (!operand.after_newline && stream_.token().begin != state_.condition_begin);
    case TokenKind::kNot:
    case TokenKind::kBitNot:
    case TokenKind::kMinus:
    case TokenKind::kStar:
    case TokenKind::kAmpersand:
    case TokenKind::kIncrement:
    case TokenKind::kDecrement: return type->known;
    default: return false;
  }
}

TypeNameId TypeParser::type_name() {
  const Nesting nesting(state_);
  const uint32_t begin = stream_.token().begin;
  TypeName type;
  if (nesting.ok()) {
    type_head(type);
    type_suffixes(type);
  }
  type.span = stream_.span_from(begin);
  return ast_.type_names.add(std::move(type));
}

// Parses a type without its suffixes.
void TypeParser::type_head(TypeName& type) {
  while (stream_.accept_word("const") || stream_.accept_word("volatile")) {
  }
  if (stream_.at(TokenKind::kLeftParen)) return type_elements(type);
  if (!stream_.at(TokenKind::kIdentifier) || (is_keyword(stream_.text()) && !stream_.at_word("typeof"))) {
    stream_.unexpected("a type");
    return;
  }
  const std::string word = stream_.qualified_name();
  if (word == "typeof") {
    stream_.expect(TokenKind::kLeftParen, "after `typeof`");
    const ExprId operand = expressions_.type_or_expression();
    if (const auto* inner = ast_.get<TypeExpr>(operand)) {
      type.typeof_type = inner->type;
    } else {
      type.typeof_expr = operand;
    }
    stream_.expect(TokenKind::kRightParen, "after what `typeof` asks about");
    return;
  }
  type.name = word;
  if (is_type_tag(word)) {
    type.tag = word == "struct"  ? TypeName::Tag::kStruct
               : word == "union" ? TypeName::Tag::kUnion
                                 : TypeName::Tag::kEnum;
    type.name = stream_.text();
    if (stream_.at(TokenKind::kIdentifier))
      type.name = stream_.qualified_name();
    else
      stream_.expect(TokenKind::kIdentifier, "after `" + word + "`");
  } else if (is_c_word(word)) {
    while (stream_.at(TokenKind::kIdentifier) && is_c_word(stream_.text())) {
      type.name.append(" ").append(stream_.text(stream_.advance()));
    }
  }
}

// `(int8, string)` or, with names, `(a = int8, b = string)`.
void TypeParser::type_elements(TypeName& type) {
  stream_.advance();
  while (stream_.ok() && !stream_.at(TokenKind::kRightParen)) {
    if (stream_.at(TokenKind::kIdentifier) && stream_.peek().kind == TokenKind::kAssign) {
      type.element_names.emplace_back(stream_.text(stream_.advance()));
      stream_.advance();
    }
    type.elements.push_back(type_name());
    if (!stream_.accept(TokenKind::kComma)) break;
  }
  if (!type.element_names.empty() && type.element_names.size() != type.elements.size()) {
    stream_.error("half-named-record", stream_.span(stream_.token()),
                  "either all elements of a record have a name or none");
  }
  stream_.expect(TokenKind::kRightParen, "after the elements of the type");
}

void TypeParser::type_suffixes(TypeName& type) {
  while (stream_.ok()) {
    if (stream_.accept(TokenKind::kStar)) {
      if (!Nesting::link(state_)) return;
      type.suffixes.push_back({.is_pointer = true});
    } else if (stream_.accept(TokenKind::kLeftBracket)) {
      if (!Nesting::link(state_)) return;
      TypeName::Suffix suffix;
      if (!stream_.at(TokenKind::kRightBracket)) suffix.count = expressions_.expression();
      type.suffixes.push_back(suffix);
      stream_.expect(TokenKind::kRightBracket, "after the number of elements");
    } else if (!stream_.accept_word("const")) {
      return;
    }
  }
}

}  // namespace espy::syntax
