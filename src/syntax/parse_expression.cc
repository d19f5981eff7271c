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
#include <fmt/format.h>

#include <algorithm>

#include "syntax/lexer.h"
#include "syntax/parser.h"

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

// ---- Expressions: precedence climbing over one table of operators.

namespace {

struct Operator {
  BinaryOp op;
  int precedence;  // higher binds tighter; 0: no operator
};

Operator binary_operator(TokenKind kind) {
  switch (kind) {
    case TokenKind::kLogicalOr: return {BinaryOp::kLogicalOr, 1};
    case TokenKind::kLogicalAnd: return {BinaryOp::kLogicalAnd, 2};
    case TokenKind::kPipe: return {BinaryOp::kBitOr, 3};
    case TokenKind::kCaret: return {BinaryOp::kBitXor, 4};
    case TokenKind::kAmpersand: return {BinaryOp::kBitAnd, 5};
    case TokenKind::kEqual: return {BinaryOp::kEqual, 6};
    case TokenKind::kNotEqual: return {BinaryOp::kNotEqual, 6};
    case TokenKind::kBitNot: return {BinaryOp::kMatch, 6};
    case TokenKind::kLess: return {BinaryOp::kLess, 7};
    case TokenKind::kLessEqual: return {BinaryOp::kLessEqual, 7};
    case TokenKind::kGreater: return {BinaryOp::kGreater, 7};
    case TokenKind::kGreaterEqual: return {BinaryOp::kGreaterEqual, 7};
    case TokenKind::kShiftLeft: return {BinaryOp::kShiftLeft, 8};
    case TokenKind::kShiftRight: return {BinaryOp::kShiftRight, 8};
    case TokenKind::kPlus: return {BinaryOp::kAdd, 9};
    case TokenKind::kMinus: return {BinaryOp::kSubtract, 9};
    case TokenKind::kStar: return {BinaryOp::kMultiply, 10};
    case TokenKind::kSlash: return {BinaryOp::kDivide, 10};
    case TokenKind::kPercent: return {BinaryOp::kModulo, 10};
    default: return {BinaryOp::kAdd, 0};
  }
}

std::optional<UnaryOp> prefix_operator(TokenKind kind) {
  switch (kind) {
    case TokenKind::kNot: return UnaryOp::kNot;
    case TokenKind::kBitNot: return UnaryOp::kBitNot;
    case TokenKind::kMinus: return UnaryOp::kNegate;
    case TokenKind::kStar: return UnaryOp::kDereference;
    case TokenKind::kAmpersand: return UnaryOp::kAddressOf;
    case TokenKind::kIncrement: return UnaryOp::kPreIncrement;
    case TokenKind::kDecrement: return UnaryOp::kPreDecrement;
    default: return std::nullopt;
  }
}

}  // namespace

ExprId ExpressionParser::add(uint32_t begin, ExprNode node) {
  return ast_.exprs.add(Expr{stream_.span_from(begin), std::move(node)});
}

ExprId ExpressionParser::error_expr() { return ast_.exprs.add(Expr{stream_.span(stream_.token()), ErrorExpr{}}); }

// The ternary is lowest and groups to the right: a ? b : c ? d : e is a ? b : (c ? d : e).
ExprId ExpressionParser::expression() {
  const uint32_t begin = stream_.token().begin;
  const ExprId condition = binary(1);
  if (!stream_.ok() || !stream_.accept(TokenKind::kQuestion)) return condition;
  const Nesting nesting(state_);
  if (!nesting.ok()) return error_expr();
  Ternary ternary{.condition = condition};
  if (!stream_.at(TokenKind::kColon)) ternary.then_value = expression();
  stream_.expect(TokenKind::kColon, "between the two values of `? :`");
  ternary.else_value = expression();
  return add(begin, ternary);
}

ExprId ExpressionParser::binary(int lowest) {
  const uint32_t begin = stream_.token().begin;
  ExprId left = unary();
  while (stream_.ok()) {
    const auto [op, precedence] = binary_operator(stream_.token().kind);
    if (precedence < lowest || precedence == 0 || predicate_ends()) break;
    if (!Nesting::link(state_)) break;
    const Span op_span = stream_.span(stream_.advance());
    const ExprId right = binary(precedence + 1);
    left = add(begin, Binary{op, left, right, op_span});
  }
  return left;
}

// A `/` before `{` closes a predicate; anywhere else it divides.
bool ExpressionParser::predicate_ends() const {
  return state_.in_predicate && stream_.at(TokenKind::kSlash) && stream_.peek().kind == TokenKind::kLeftBrace;
}

ExprId ExpressionParser::unary() {
  const Nesting nesting(state_);
  if (!nesting.ok()) return error_expr();
  const uint32_t begin = stream_.token().begin;
  if (const auto op = prefix_operator(stream_.token().kind)) {
    stream_.advance();
    const ExprId operand = unary();
    if (*op == UnaryOp::kPreIncrement || *op == UnaryOp::kPreDecrement) check_assignable(operand);
    return add(begin, Unary{*op, operand});
  }
  if (stream_.accept_word("comptime")) {
    const ExprId operand = unary();
    return add(begin, Comptime{operand});
  }
  if (stream_.at(TokenKind::kLeftParen) && types_.at_cast()) return cast();
  return postfix();
}

ExprId ExpressionParser::cast() {
  const uint32_t begin = stream_.advance().begin;
  const TypeNameId type = types_.type_name();
  stream_.expect(TokenKind::kRightParen, "after the type");
  const ExprId operand = unary();
  return add(begin, Cast{type, operand});
}

ExprId ExpressionParser::postfix() {
  const uint32_t begin = stream_.token().begin;
  ExprId value = primary();
  while (stream_.ok()) {
    const ExprId longer = postfix_operator(value, begin);
    if (!longer.valid()) break;
    value = longer;
    if (!Nesting::link(state_)) break;
  }
  return value;
}

// Parses a postfix operator of `base`; invalid if there is none.
ExprId ExpressionParser::postfix_operator(ExprId base, uint32_t begin) {
  switch (stream_.token().kind) {
    case TokenKind::kDot:
    case TokenKind::kArrow: return member(base, begin);
    case TokenKind::kLeftBracket: {
      stream_.advance();
      Index index{base, list(TokenKind::kRightBracket, "after the index")};
      if (index.indices.empty()) {
        stream_.error("empty-index", stream_.span_from(begin), "there is nothing between the brackets",
                      "write the map's name alone for the whole map");
      }
      return add(begin, std::move(index));
    }
    case TokenKind::kIncrement:
    case TokenKind::kDecrement: {
      check_assignable(base);
      const bool up = stream_.advance().kind == TokenKind::kIncrement;
      return add(begin, Unary{up ? UnaryOp::kPostIncrement : UnaryOp::kPostDecrement, base});
    }
    default: return {};
  }
}

// base.name, base->name, base.0
ExprId ExpressionParser::member(ExprId base, uint32_t begin) {
  const bool arrow = stream_.advance().kind == TokenKind::kArrow;
  if (stream_.at(TokenKind::kIdentifier)) {
    const Token name = stream_.advance();
    return add(begin, Access{base, std::string(stream_.text(name)), stream_.span(name), arrow});
  }
  if (stream_.at(TokenKind::kInteger)) {
    const Token token = stream_.token();
    if (ast_.get<IntegerLiteral>(base) != nullptr) {
      stream_.error("no-floating-point", stream_.span(begin, token.end), "there are no floating-point numbers",
                    "scale to an integer: 1500 instead of 1.5");
      return error_expr();
    }
    const IntegerValue value = read_integer(stream_.text());
    if (value.problem == IntegerValue::Problem::kNone && !value.is_duration && value.value <= UINT32_MAX) {
      stream_.advance();
      return add(begin, TupleAccess{base, static_cast<uint32_t>(value.value)});
    }
  }
  stream_.unexpected(fmt::format("the name of a member after `{}`", arrow ? "->" : "."));
  return error_expr();
}

ExprId ExpressionParser::primary() {
  const uint32_t begin = stream_.token().begin;
  switch (stream_.token().kind) {
    case TokenKind::kInteger: return integer();
    case TokenKind::kString: return string();
    case TokenKind::kVariable: {
      const Token name = stream_.advance();
      return add(begin, Variable{std::string(stream_.text(name))});
    }
    case TokenKind::kMap: {
      const Token name = stream_.advance();
      return add(begin, Map{std::string(stream_.text(name))});
    }
    case TokenKind::kPositional: {
      const Token token = stream_.advance();
      uint64_t index = 0;
      for (const char c : stream_.text(token).substr(1)) index = std::min<uint64_t>(index * 10 + (c - '0'), UINT32_MAX);
      return add(begin, Positional{static_cast<uint32_t>(index)});
    }
    case TokenKind::kPositionalCount: stream_.advance(); return add(begin, PositionalCount{});
    case TokenKind::kLeftParen: return parenthesised();
    case TokenKind::kLeftBrace: return statements_.block();
    case TokenKind::kIdentifier: return word();
    default: stream_.unexpected("an expression"); return error_expr();
  }
}

// Parses a name, a call, or a keyword expression.
ExprId ExpressionParser::word() {
  const uint32_t begin = stream_.token().begin;
  const std::string_view text = stream_.text();
  if (text == "true" || text == "false") {
    stream_.advance();
    return add(begin, BoolLiteral{text == "true"});
  }
  if (text == "if") return statements_.if_expression();
  if (text == "sizeof" || text == "offsetof" || text == "typeinfo") return sizeof_like(text);
  if (text == "typeof") {
    const TypeNameId type = types_.type_name();
    return add(begin, TypeExpr{type});
  }
  if (is_keyword(text)) {
    stream_.unexpected("an expression");
    return error_expr();
  }
  if (stream_.peek().kind == TokenKind::kLeftParen) return call();
  std::string name = stream_.qualified_name();
  if (stream_.at(TokenKind::kNot) && stream_.peek().kind == TokenKind::kLeftParen)
    stream_.unexpected("`(`", "macros are called as functions are, without `!`");
  return add(begin, Name{std::move(name)});
}

ExprId ExpressionParser::call() {
  const Token name = stream_.advance();
  stream_.advance();
  Call call{std::string(stream_.text(name)), stream_.span(name), list(TokenKind::kRightParen, "after the arguments")};
  return add(name.begin, std::move(call));
}

// Parses a comma-separated list after a consumed opening bracket; consumes `close`. Types may be arguments of calls,
// but not keys of maps.
std::vector<ExprId> ExpressionParser::list(TokenKind close, std::string_view what) {
  std::vector<ExprId> out;
  while (stream_.ok() && !stream_.at(close)) {
    out.push_back(close == TokenKind::kRightBracket ? expression() : argument());
    if (!stream_.ok() || !stream_.accept(TokenKind::kComma)) break;
  }
  stream_.expect(close, what);
  return out;
}

// A type may be an argument too: container_of(p, struct foo, m).
ExprId ExpressionParser::argument() { return type_or_expression(); }

// sizeof(int8), and sizeof((int8)) as well.
ExprId ExpressionParser::type_or_expression() {
  const uint32_t begin = stream_.token().begin;
  Token first = stream_.token();
  Lexer lexer = stream_.lexer();
  size_t open = 0;
  for (; first.kind == TokenKind::kLeftParen; ++open) first = lexer.next();
  if (first.kind != TokenKind::kIdentifier) return expression();
  const std::optional<TypeParser::TypeAhead> ahead = types_.look_for_type(first, lexer);
  const bool is_pointer = ahead && ahead->suffix && open == 0 && stream_.peek().kind == TokenKind::kStar;
  if (!ahead || (!ahead->known && !is_pointer)) return expression();
  Token after = ahead->after;
  lexer = ahead->lexer;
  size_t closed = 0;
  for (; closed < open && after.kind == TokenKind::kRightParen; ++closed) after = lexer.next();
  if (closed < open || (after.kind != TokenKind::kRightParen && after.kind != TokenKind::kComma)) return expression();
  for (size_t i = 0; i < open; ++i) stream_.advance();
  const TypeNameId type = types_.type_name();
  for (size_t i = 0; i < open; ++i) stream_.advance();
  return add(begin, TypeExpr{type});
}

ExprId ExpressionParser::sizeof_like(std::string_view name) {
  const uint32_t begin = stream_.advance().begin;
  stream_.expect(TokenKind::kLeftParen, fmt::format("after `{}`", name));
  const ExprId operand = type_or_expression();
  if (name == "offsetof") return offsetof_path(begin, operand);
  stream_.expect(TokenKind::kRightParen, fmt::format("after what `{}` asks about", name));
  if (name == "sizeof") return add(begin, Sizeof{operand});
  return add(begin, Typeinfo{operand});
}

// After `offsetof(T`: `, a.b.c)`
ExprId ExpressionParser::offsetof_path(uint32_t begin, ExprId operand) {
  Offsetof out{.operand = operand};
  stream_.expect(TokenKind::kComma, "between the type and the member of `offsetof`");
  const uint32_t path_begin = stream_.token().begin;
  do {
    if (stream_.at(TokenKind::kIdentifier)) out.path.emplace_back(stream_.text());
    if (!stream_.expect(TokenKind::kIdentifier, "of a member")) break;
  } while (stream_.accept(TokenKind::kDot));
  out.path_span = stream_.span_from(path_begin);
  stream_.expect(TokenKind::kRightParen, "after the arguments of `offsetof`");
  return add(begin, std::move(out));
}

// (e), (a, b), (a,), (), (x = 1, y = 2)
ExprId ExpressionParser::parenthesised() {
  const uint32_t begin = stream_.advance().begin;
  if (stream_.at(TokenKind::kIdentifier) && stream_.peek().kind == TokenKind::kAssign) return record(begin);
  Tuple tuple;
  bool comma = false;
  while (stream_.ok() && !stream_.at(TokenKind::kRightParen)) {
    tuple.elements.push_back(expression());
    if (stream_.at(TokenKind::kAssign)) {
      stream_.error("assignment-in-expression", stream_.span(stream_.token()), "an assignment is not a value",
                    "use `==` to compare");
    }
    if (!stream_.ok() || !stream_.accept(TokenKind::kComma)) break;
    comma = true;
  }
  stream_.expect(TokenKind::kRightParen, "to close the parenthesis");
  if (tuple.elements.size() == 1 && !comma) return tuple.elements.front();
  return add(begin, std::move(tuple));
}

ExprId ExpressionParser::record(uint32_t begin) {
  Record record;
  while (stream_.ok() && !stream_.at(TokenKind::kRightParen)) {
    const std::string name(stream_.text());
    stream_.expect(TokenKind::kIdentifier, "of a member");
    stream_.expect(TokenKind::kAssign, "after the name of the member");
    record.names.push_back(name);
    record.values.push_back(expression());
    if (!stream_.ok() || !stream_.accept(TokenKind::kComma)) break;
  }
  stream_.expect(TokenKind::kRightParen, "after the members");
  return add(begin, std::move(record));
}

ExprId ExpressionParser::integer() {
  const Token token = stream_.advance();
  const IntegerValue value = read_integer(stream_.text(token));
  if (value.problem == IntegerValue::Problem::kOutOfRange) {
    stream_.remark("integer-out-of-range", stream_.span(token),
                   fmt::format("`{}` does not fit into 64 bits", stream_.text(token)));
  } else if (value.problem == IntegerValue::Problem::kMalformed) {
    stream_.remark("malformed-integer", stream_.span(token), fmt::format("`{}` is not a number", stream_.text(token)),
                   stream_.text(token)[0] == '0' ? "a number that begins with 0 is octal, with 0x hexadecimal"
                                                 : "durations end in ns, us, ms, s, m, h or d");
  }
  return add(token.begin, IntegerLiteral{value.value, value.is_duration});
}

ExprId ExpressionParser::string() {
  const Token token = stream_.advance();
  const std::string_view quoted = stream_.text(token);
  StringValue value = read_string(quoted.substr(1, quoted.size() - 2));
  if (value.bad_escape) {
    const uint32_t at = token.begin + 1 + *value.bad_escape;
    stream_.remark("unknown-escape", stream_.span(at, at + 2), "invalid escape sequence",
                   "\\n \\t \\r \\\" \\\\ \\0nn \\xnn are");
  }
  return add(token.begin, StringLiteral{std::move(value.value)});
}

void ExpressionParser::check_assignable(ExprId target) {
  if (!stream_.ok()) return;
  if (ast_.get<Variable>(target) || ast_.get<Map>(target) || ast_.get<Index>(target) || ast_.get<Access>(target))
    return;
  const auto* name = ast_.get<Name>(target);
  stream_.error("not-assignable", ast_[target].span, "this cannot be assigned to",
                name != nullptr ? fmt::format("variables begin with `$`: did you mean `${}`?", name->name)
                                : "only variables and maps can");
}

}  // namespace espy::syntax
