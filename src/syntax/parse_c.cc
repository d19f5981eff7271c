#include "syntax/parse_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/strings.h"
#include "syntax/lexer.h"
#include "syntax/preprocess.h"

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

namespace {

constexpr uint32_t kMaxNesting = 100;

bool is_tag(std::string_view word) { return word == "struct" || word == "union" || word == "enum"; }

// Specifiers and qualifiers without influence on the layout.
bool is_ignored(std::string_view word) {
  constexpr std::string_view kIgnored[] = {"const",  "volatile", "static", "extern",   "inline",
                                           "__user", "__kernel", "__rcu",  "__percpu", "__iomem"};
  return std::find(std::begin(kIgnored), std::end(kIgnored), word) != std::end(kIgnored);
}

bool is_number_word(std::string_view word) {
  constexpr std::string_view kWords[] = {"unsigned", "signed", "long", "short", "int", "char", "double"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool is_attribute(std::string_view word) {
  return word == "__attribute__" || word == "__packed" || word == "__aligned";
}

}  // namespace

bool CParser::at_definition(const TokenStream& stream) {
  if (stream.at(TokenKind::kHash)) return true;
  if (!stream.at(TokenKind::kIdentifier) || stream.peek().kind == TokenKind::kColon) return false;
  return stream.text() == "typedef" || is_tag(stream.text());
}

void CParser::definition() {
  if (stream_.at(TokenKind::kHash)) return directive();
  if (stream_.at_word("typedef")) return typedef_declaration();
  tagged_declaration();
}

void CParser::directive() {
  const Directive directive = read_directive(stream_.source_text(), stream_.token().begin);
  const source::Span span = stream_.span(directive.where.begin, directive.where.end);
  if (directive.word == "define") {
    DefineText define = read_define(directive.rest);
    if (define.name.empty() || !is_word_start(define.name[0])) {
      stream_.remark("malformed-define", span, "`#define` needs a name");
    } else {
      out_.push_back(CDefine{span, std::string(define.name), define.is_function_like, std::move(define.parameters),
                             std::move(define.body)});
    }
  } else if (directive.word == "include") {
    include(span, directive.rest);
  } else if (directive.word == "error") {
    stream_.remark("error-directive", span, std::string(directive.rest));
  } else {
    stream_.remark("unknown-directive", span, fmt::format("there is no `#{}`", directive.word),
                   "#include, #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif are known");
  }
  stream_.seek(directive.where.end);
}

void CParser::include(const source::Span& span, std::string_view rest) {
  const char close = rest.starts_with('<') ? '>' : '"';
  const size_t end = rest.size() > 1 ? rest.find(close, 1) : std::string_view::npos;
  if (end == std::string_view::npos || (rest[0] != '<' && rest[0] != '"')) {
    stream_.remark("malformed-include", span, "`#include` needs a file", "#include <linux/fs.h> or #include \"my.h\"");
    return;
  }
  out_.push_back(CInclude{span, std::string(rest.substr(1, end - 1)), close == '>'});
  const std::string_view behind = trim(rest.substr(end + 1));
  if (!behind.empty() && !behind.starts_with("//") && !behind.starts_with("/*"))
    stream_.remark("malformed-include", span, "nothing can follow the file of an `#include` on its line",
                   "begin a new line after the name of the file");
}

// A struct or enum that is named and defined in the middle of another declaration is a definition of its own.
void CParser::define_inline(const CType& type, const source::Span& span) {
  if (type.name.empty()) return;
  if (type.inline_struct) {
    out_.push_back(*type.inline_struct);
    std::get<CStruct>(out_.back()).span = span;
  } else if (type.inline_enum) {
    out_.push_back(*type.inline_enum);
    std::get<CEnum>(out_.back()).span = span;
  }
}

// typedef unsigned int u, *pu;
void CParser::typedef_declaration() {
  const uint32_t begin = stream_.advance().begin;
  CAttributes common;
  const CType base = specifiers(&common);
  std::vector<CTypedef> names;
  do {
    CTypedef out{.type = base, .attributes = common};
    out.name = declarator(out.type.steps, &out.attributes);
    if (stream_.ok() && out.name.empty()) stream_.unexpected("the name of the new type");
    attributes(&out.attributes);
    names.push_back(std::move(out));
  } while (stream_.ok() && stream_.accept(TokenKind::kComma));
  stream_.expect(TokenKind::kSemicolon, "after the typedef");
  const source::Span span = stream_.span_from(begin);
  define_inline(base, span);
  for (CTypedef& name : names) {
    name.span = span;
    out_.push_back(std::move(name));
  }
}

// struct foo { ... };  struct foo; The `;` behind a body may be left out: `struct foo { int x; } begin { ... }`.
void CParser::tagged_declaration() {
  const uint32_t begin = stream_.token().begin;
  CType type = specifiers();
  if (!type.inline_struct && !type.inline_enum && !stream_.at(TokenKind::kSemicolon)) {
    stream_.unexpected("`;` after the definition", "C variables and functions cannot be defined in a script");
  }
  stream_.accept(TokenKind::kSemicolon);
  const source::Span span = stream_.span_from(begin);
  if (type.inline_enum && type.name.empty()) {
    out_.push_back(*type.inline_enum);
    std::get<CEnum>(out_.back()).span = span;
  } else if (type.inline_struct || type.inline_enum) {
    define_inline(type, span);
  } else if (!type.name.empty() && type.tag != CType::Tag::kEnum) {
    CStruct forward{.span = span, .name = type.name, .is_union = type.tag == CType::Tag::kUnion};
    forward.has_body = false;
    out_.push_back(std::move(forward));
  }
}

// Parses the specifiers before the declarators: `const unsigned long`, `struct foo`, `struct { ... }`.
CType CParser::specifiers(CAttributes* attributes_of_names) {
  CType out;
  while (stream_.ok() && stream_.at(TokenKind::kIdentifier)) {
    const std::string_view word = stream_.text();
    if (is_attribute(word)) {
      attributes(attributes_of_names);
    } else if (is_ignored(word)) {
      stream_.advance();
    } else if (is_tag(word) && out.name.empty()) {
      tagged(out);
      while (stream_.at(TokenKind::kIdentifier) && is_ignored(stream_.text())) stream_.advance();
      return out;
    } else if (out.name.empty() || (is_number_word(word) && is_number_word(out.name.substr(0, out.name.find(' '))))) {
      if (!out.name.empty()) out.name += ' ';
      out.name += stream_.text(stream_.advance());
    } else {
      break;
    }
  }
  if (out.name.empty()) stream_.unexpected("a type");
  return out;
}

// struct/union/enum, with or without a tag, with or without a body.
void CParser::tagged(CType& type) {
  const uint32_t begin = stream_.token().begin;
  const std::string_view word = stream_.text(stream_.advance());
  type.tag = word == "struct" ? CType::Tag::kStruct : word == "union" ? CType::Tag::kUnion : CType::Tag::kEnum;
  CAttributes found;
  attributes(&found);
  if (stream_.at(TokenKind::kIdentifier)) type.name = stream_.text(stream_.advance());
  // Attributes behind the name belong to the body; without one, to what is declared.
  const uint32_t behind_name = stream_.token().begin;
  CAttributes of_body = found;
  attributes(&of_body);
  if (stream_.at(TokenKind::kLeftBrace))
    found = of_body;
  else if (stream_.token().begin != behind_name)
    stream_.seek(behind_name);
  if (!stream_.at(TokenKind::kLeftBrace)) {
    if (type.name.empty()) stream_.unexpected(fmt::format("a name or `{{` after `{}`", word));
    return;
  }
  if (++nesting_ > kMaxNesting) {
    stream_.error("nesting-too-deep", stream_.span(stream_.token()), "this is nested too deeply");
  } else if (type.tag == CType::Tag::kEnum) {
    CEnum body = enum_body(type.name);
    attributes(nullptr);
    body.span = stream_.span_from(begin);
    type.inline_enum = std::make_shared<const CEnum>(std::move(body));
  } else {
    CStruct body = struct_body(type.name, type.tag == CType::Tag::kUnion);
    attributes(&found);
    body.attributes = found;
    body.span = stream_.span_from(begin);
    type.inline_struct = std::make_shared<const CStruct>(std::move(body));
  }
  --nesting_;
}

CStruct CParser::struct_body(std::string name, bool is_union) {
  CStruct out{.name = std::move(name), .is_union = is_union};
  const Token open = stream_.advance();
  while (stream_.ok() && !stream_.at(TokenKind::kRightBrace) && !stream_.at_end()) {
    if (stream_.at(TokenKind::kHash)) {
      directive();
    } else {
      members(out.members);
    }
  }
  if (stream_.at_end()) {
    auto* error =
        stream_.error("unclosed-brace", stream_.here(), "the script ends inside a struct", "a `}` is missing");
    if (error != nullptr) error->notes.push_back({stream_.span(open), "the struct opens here"});
  }
  stream_.accept(TokenKind::kRightBrace);
  return out;
}

// One declaration, which may name several members: `int a, *b, c[4], d : 3;` The `;` of the last one may be left out.
void CParser::members(std::vector<CMember>& out) {
  if (stream_.accept(TokenKind::kSemicolon)) return;
  const uint32_t begin = stream_.token().begin;
  CAttributes common;
  const CType base = specifiers(&common);
  if (stream_.at(TokenKind::kSemicolon) || stream_.at(TokenKind::kRightBrace)) {
    // Anonymous if it has a body without a tag; a mere definition or declaration if it has a tag.
    if (base.name.empty()) out.push_back({.span = stream_.span_from(begin), .type = base});
    stream_.accept(TokenKind::kSemicolon);
    if (!base.name.empty()) define_inline(base, stream_.span_from(begin));
    return;
  }
  do {
    member(out, base, common);
  } while (stream_.ok() && stream_.accept(TokenKind::kComma));
  if (!stream_.at(TokenKind::kRightBrace)) stream_.expect(TokenKind::kSemicolon, "after the member");
  define_inline(base, stream_.span_from(begin));
}

void CParser::member(std::vector<CMember>& out, const CType& base, const CAttributes& common) {
  const uint32_t begin = stream_.token().begin;
  CMember member{.type = base, .attributes = common};
  if (!stream_.at(TokenKind::kColon)) {
    member.name = declarator(member.type.steps, &member.attributes);
    if (stream_.ok() && member.name.empty()) stream_.unexpected("the name of a member");
  }
  if (stream_.accept(TokenKind::kColon)) {
    const auto bits = constant("the width of a bit field");
    if (bits && (*bits < 0 || *bits > 64)) {
      stream_.remark("bad-bit-field", stream_.span_from(begin), "a bit field has 0 to 64 bits");
    }
    member.bit_size = static_cast<uint32_t>(std::clamp<int64_t>(bits.value_or(0), 0, 64));
  }
  attributes(&member.attributes);
  member.span = stream_.span_from(begin);
  out.push_back(std::move(member));
}

// Parses a declarator: `*name[4]`, `(*name)(int)`. Returns its name, "" if it has none, and appends its steps,
// innermost first: `int m[2][3]` is three ints, twice.
std::string CParser::declarator(std::vector<CType::Step>& steps, CAttributes* attributes_of_name) {
  if (++nesting_ > kMaxNesting) {
    stream_.error("nesting-too-deep", stream_.span(stream_.token()), "this is nested too deeply");
    --nesting_;
    return "";
  }
  while (stream_.at(TokenKind::kStar) || (stream_.at(TokenKind::kIdentifier) && is_ignored(stream_.text()))) {
    if (stream_.advance().kind == TokenKind::kStar) steps.push_back({.kind = CType::Step::Kind::kPointer});
  }
  attributes(attributes_of_name);
  std::string name;
  std::vector<CType::Step> inner;
  const Token next = stream_.peek();
  if (stream_.at(TokenKind::kLeftParen) && (next.kind == TokenKind::kStar || next.kind == TokenKind::kLeftParen)) {
    stream_.advance();
    name = declarator(inner);
    stream_.expect(TokenKind::kRightParen, "after the declarator");
  } else if (stream_.at(TokenKind::kIdentifier) && !is_attribute(stream_.text())) {
    name = stream_.text(stream_.advance());
  }
  std::vector<CType::Step> suffixes;
  while (stream_.ok() && (stream_.at(TokenKind::kLeftBracket) || stream_.at(TokenKind::kLeftParen))) {
    suffixes.push_back(stream_.at(TokenKind::kLeftBracket) ? array_step() : function_step());
  }
  steps.insert(steps.end(), suffixes.rbegin(), suffixes.rend());
  steps.insert(steps.end(), inner.begin(), inner.end());
  if (steps.size() > kMaxNesting)
    stream_.error("nesting-too-deep", stream_.span(stream_.token()), "this is nested too deeply");
  --nesting_;
  return name;
}

CType::Step CParser::array_step() {
  CType::Step out{.kind = CType::Step::Kind::kArray};
  const uint32_t begin = stream_.advance().begin;
  if (!stream_.at(TokenKind::kRightBracket)) {
    const auto count = constant("the length of an array");
    if (count && *count < 0) {
      stream_.remark("bad-array-length", stream_.span_from(begin), "an array cannot have a negative length");
    } else if (count) {
      out.count = static_cast<uint64_t>(*count);
    }
  }
  stream_.expect(TokenKind::kRightBracket, "after the length of the array");
  return out;
}

CType::Step CParser::function_step() {
  CType::Step out{.kind = CType::Step::Kind::kFunction};
  stream_.advance();
  while (stream_.ok() && !stream_.at(TokenKind::kRightParen)) {
    if (stream_.accept(TokenKind::kEllipsis)) break;
    CType parameter = specifiers();
    if (stream_.ok()) declarator(parameter.steps);
    out.parameters.push_back(std::move(parameter));
    if (!stream_.ok() || !stream_.accept(TokenKind::kComma)) break;
  }
  stream_.expect(TokenKind::kRightParen, "after the parameters");
  return out;
}

CEnum CParser::enum_body(std::string name) {
  CEnum out{.name = std::move(name)};
  stream_.advance();
  enumerators_.clear();
  int64_t next = 0;
  while (stream_.ok() && !stream_.at(TokenKind::kRightBrace) && !stream_.at_end()) {
    const std::string enumerator(stream_.text());
    if (!stream_.expect(TokenKind::kIdentifier, "of an enumerator")) break;
    if (stream_.accept(TokenKind::kAssign)) next = constant("the value of an enumerator").value_or(next);
    enumerators_.emplace_back(enumerator, next);
    next = static_cast<int64_t>(static_cast<uint64_t>(next) + 1);
    if (!stream_.accept(TokenKind::kComma)) break;
  }
  stream_.expect(TokenKind::kRightBrace, "after the enumerators");
  out.enumerators = enumerators_;
  return out;
}

// Parses attributes, if any; those that affect the layout are stored in `target`.
void CParser::attributes(CAttributes* target) {
  while (stream_.ok() && stream_.at(TokenKind::kIdentifier) && is_attribute(stream_.text())) {
    const std::string_view word = stream_.text(stream_.advance());
    if (word == "__packed") {
      if (target != nullptr) target->is_packed = true;
    } else if (word == "__aligned") {
      aligned(target);
    } else {
      attribute_list(target);
    }
  }
}

// ((packed, aligned(8), ...))
void CParser::attribute_list(CAttributes* target) {
  stream_.expect(TokenKind::kLeftParen, "after `__attribute__`");
  stream_.expect(TokenKind::kLeftParen, "after `__attribute__(`");
  while (stream_.ok() && stream_.at(TokenKind::kIdentifier)) {
    const std::string_view word = stream_.text(stream_.advance());
    if (word == "packed" || word == "__packed__") {
      if (target != nullptr) target->is_packed = true;
    } else if (word == "aligned" || word == "__aligned__") {
      aligned(target);
    } else if (stream_.at(TokenKind::kLeftParen)) {
      stream_.skip_balanced();
    }
    if (!stream_.accept(TokenKind::kComma)) break;
  }
  stream_.expect(TokenKind::kRightParen, "after the attributes");
  stream_.expect(TokenKind::kRightParen, "after the attributes");
}

void CParser::aligned(CAttributes* target) {
  const uint32_t begin = stream_.token().begin;
  int64_t bytes = 16;  // without a number: the largest alignment of the ABI
  if (stream_.accept(TokenKind::kLeftParen)) {
    bytes = constant("an alignment").value_or(bytes);
    stream_.expect(TokenKind::kRightParen, "after the alignment");
  }
  const bool power_of_two = bytes > 0 && bytes <= (1 << 20) && (bytes & (bytes - 1)) == 0;
  if (!power_of_two) {
    stream_.remark("bad-alignment", stream_.span_from(begin), "an alignment must be a power of two");
  } else if (target != nullptr) {
    target->align_bytes = static_cast<uint32_t>(bytes);
  }
}

// Parses a constant expression, up to the `,`, `;` or bracket that ends it.
std::optional<int64_t> CParser::constant(std::string_view what) {
  const uint32_t begin = stream_.token().begin;
  while (!stream_.at_end()) {
    const TokenKind kind = stream_.token().kind;
    if (kind == TokenKind::kLeftParen) {
      stream_.skip_balanced();
      continue;
    }
    if (kind == TokenKind::kComma || kind == TokenKind::kSemicolon || kind == TokenKind::kRightBracket ||
        kind == TokenKind::kRightBrace || kind == TokenKind::kRightParen || kind == TokenKind::kLeftBrace) {
      break;
    }
    stream_.advance();
  }
  const source::Span span = stream_.span_from(begin);
  const std::string_view text = stream_.source_text().substr(span.begin, span.end - span.begin);
  int lookups_left = 10'000;  // macros that name others twice are worth billions of lookups
  const ConstantScope scope{.value = [&](std::string_view name) { return name_value(name, 0, lookups_left); }};
  const auto out = evaluate_constant(text, scope);
  if (!out) stream_.remark("not-a-constant", span, fmt::format("{} must be a constant", what));
  return out;
}

std::optional<int64_t> CParser::name_value(std::string_view name, int depth, int& lookups_left) const {
  constexpr int kMaxDepth = 20;
  if (--lookups_left < 0) return std::nullopt;
  for (const auto& [enumerator, value] : enumerators_) {
    if (enumerator == name) return value;
  }
  for (auto definition = out_.rbegin(); definition != out_.rend(); ++definition) {
    if (const auto* enumeration = std::get_if<CEnum>(&*definition)) {
      for (const auto& [enumerator, value] : enumeration->enumerators) {
        if (enumerator == name) return value;
      }
    }
    const auto* define = std::get_if<CDefine>(&*definition);
    if (define == nullptr || define->name != name || define->is_function_like || depth > kMaxDepth) continue;
    const ConstantScope scope{
        .value = [&, depth](std::string_view n) { return name_value(n, depth + 1, lookups_left); }};
    return evaluate_constant(define->body, scope);
  }
  return known_ ? known_(name) : std::nullopt;
}

}  // namespace espy::syntax
