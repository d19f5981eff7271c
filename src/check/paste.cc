#include "check/paste.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "syntax/lexer.h"

namespace espy::check {

using syntax::Lexer;
using syntax::Token;
using syntax::TokenKind;

namespace {

std::string_view text_of(std::string_view text, const Token& token) {
  return text.substr(token.begin, token.end - token.begin);
}

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> out;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) out.push_back(token);
  return out;
}

class Paster {
 public:
  Paster(const syntax::CDefine& define, const std::vector<std::string_view>& arguments)
      : define_(define), arguments_(arguments) {}

  std::string run() {
    const std::string_view body = define_.body;
    const std::vector<Token> tokens = tokens_of(body);
    const auto is_hash = [&](size_t i) { return i < tokens.size() && tokens[i].kind == TokenKind::kHash; };
    bool joins = false;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view word = text_of(body, tokens[i]);
      if (is_hash(i) && is_hash(i + 1)) {
        joins = true;
        ++i;
        continue;
      }
      const std::string_view* named =
          is_hash(i) && i + 1 < tokens.size() ? argument(text_of(body, tokens[i + 1])) : nullptr;
      if (named) {
        put('"' + escape(*named) + '"', joins);
        ++i;
      } else {
        put(with_arguments(word), joins);
      }
      joins = false;
    }
    return out_;
  }

 private:
  const std::string_view* argument(std::string_view name) const {
    const auto found = std::ranges::find(define_.parameters, name);
    return found == define_.parameters.end() ? nullptr : &arguments_[found - define_.parameters.begin()];
  }

  // In `$x` and `@x` where x is a parameter, the sign stays.
  std::string with_arguments(std::string_view word) const {
    if (const auto* whole = argument(word)) return std::string(*whole);
    const bool has_sign = word.starts_with('$') || word.starts_with('@');
    const auto* name = has_sign ? argument(word.substr(1)) : nullptr;
    return name ? word[0] + std::string(*name) : std::string(word);
  }

  void put(std::string_view word, bool joins) {
    const bool is_string = word.starts_with('"');
    if (is_string && last_is_string_) {
      out_.pop_back();
      out_ += word.substr(1);
    } else {
      if (!joins && !out_.empty()) out_ += ' ';
      out_ += word;
    }
    last_is_string_ = is_string;
  }

  const syntax::CDefine& define_;
  const std::vector<std::string_view>& arguments_;
  std::string out_;
  bool last_is_string_ = false;
};

constexpr int kMaxDepth = 20;  // of macros that name each other

// `seen`: the macros that were looked at.
bool needs_paste(const syntax::CDefine& define, const DefinesByName& others, std::set<const syntax::CDefine*>& seen,
                 int depth) {
  if (!seen.insert(&define).second) return false;
  return std::ranges::any_of(tokens_of(define.body), [&](const Token& token) {
    if (token.kind == TokenKind::kHash) return true;
    const auto other = others.find(text_of(define.body, token));
    return depth < kMaxDepth && other != others.end() && needs_paste(*other->second, others, seen, depth + 1);
  });
}

}  // namespace

bool needs_paste(const syntax::CDefine& define, const DefinesByName& others) {
  std::set<const syntax::CDefine*> seen;
  return needs_paste(define, others, seen, 0);
}

std::vector<std::string_view> argument_texts(std::string_view call) {
  std::vector<std::string_view> out;
  int depth = 0;
  uint32_t begin = 0;
  for (const Token& token : tokens_of(call)) {
    const bool opens = token.kind == TokenKind::kLeftParen || token.kind == TokenKind::kLeftBracket ||
                       token.kind == TokenKind::kLeftBrace;
    const bool closes = token.kind == TokenKind::kRightParen || token.kind == TokenKind::kRightBracket ||
                        token.kind == TokenKind::kRightBrace;
    depth += opens ? 1 : closes ? -1 : 0;
    const bool is_first = opens && depth == 1;
    const bool is_last = closes && depth == 0;
    const bool is_between = token.kind == TokenKind::kComma && depth == 1;
    if (is_last || is_between) out.push_back(trim(call.substr(begin, token.begin - begin)));
    if (is_first || is_between) begin = token.end;
  }
  if (out.size() == 1 && out[0].empty()) out.clear();
  return out;
}

std::string paste(const syntax::CDefine& define, const std::vector<std::string_view>& arguments) {
  return Paster(define, arguments).run();
}

}  // namespace espy::check
