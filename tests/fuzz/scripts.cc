#include "scripts.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "../unit/syntax_scripts.h"

namespace espy::fuzz {

namespace {

// Classes of tokens: what may stand for what, more or less.
enum Class : uint8_t { kName, kVariable, kMap, kNumber, kText, kBinary, kOther, kClasses };

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

Class class_of(std::string_view token) {
  constexpr std::string_view kOperators[] = {"+",  "-",  "*",  "/",  "%",  "&",  "|",  "^",  "<<", ">>", "<",  ">",
                                             "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "=",  "*=", "|=", "<<="};
  const char first = token[0];
  if (first == '$') return kVariable;
  if (first == '@') return kMap;
  if (first == '"') return kText;
  if (std::isdigit(static_cast<unsigned char>(first)) != 0) return kNumber;
  if (is_word(first)) return kName;
  return std::ranges::find(kOperators, token) != std::end(kOperators) ? kBinary : kOther;
}

// Blanks are dropped, except that lines stay lines for the preprocessor's sake.
std::vector<std::string> tokenize(std::string_view text) {
  constexpr std::string_view kLong[] = {
      "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=",
      "*=",  "/=",  "%=",  "&=", "|=", "^=", "++", "--", "->", "..", "//", "/*", "*/"};
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (text[at] == ' ' || text[at] == '\t') {
      at = end;
      continue;
    }
    if (is_word(text[at]) || ((text[at] == '$' || text[at] == '@') && end < text.size())) {
      while (end < text.size() && is_word(text[end])) ++end;
    } else if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      for (const std::string_view each : kLong)
        if (text.substr(at).starts_with(each)) {
          end = at + each.size();
          break;
        }
    }
    out.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

// A blank between words only, where it has to be, and a few more that do not matter. Attach points have none.
std::string join(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) {
    if (!out.empty() && is_word(out.back()) && is_word(token[0])) out += ' ';
    out += token;
  }
  return out;
}

const char kBytes[] = "(){}[]<>/*:;,.$@#\"'\\+-=!~?&|^% \n\taz09_";

constexpr std::string_view kNumbers[] = {"0",
                                         "1",
                                         "2",
                                         "7",
                                         "8",
                                         "63",
                                         "64",
                                         "65",
                                         "127",
                                         "128",
                                         "255",
                                         "256",
                                         "1000",
                                         "65535",
                                         "2147483647",
                                         "2147483648",
                                         "4294967295",
                                         "1e9",
                                         "1s",
                                         "5ms",
                                         "-1",
                                         "0x7f",
                                         "0xff",
                                         "0xffffffff",
                                         "0x80000000",
                                         "10000000000",
                                         "9223372036854775807",
                                         "18446744073709551615"};
constexpr std::string_view kNames[] = {
    "pid",     "tid",     "comm",     "nsecs",   "cpu",    "kstack", "ustack", "probe", "func",   "args",  "retval",
    "curtask", "rand",    "count",    "sum",     "min",    "max",    "avg",    "stats", "hist",   "lhist", "str",
    "buf",     "ksym",    "usym",     "ntop",    "printf", "print",  "delete", "clear", "zero",   "len",   "if",
    "else",    "while",   "for",      "let",     "return", "int8",   "int64",  "uint8", "uint64", "bool",  "sizeof",
    "string",  "elapsed", "strftime", "has_key", "true",   "false",  "uint16"};

// A golden test's expectations are comments that would only be damaged.
void drop_expectations(std::string& script) {
  if (const size_t end = script.find("\n//---"); end != std::string::npos) script.resize(end);
}

}  // namespace

ScriptMutator::ScriptMutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)), pools_(kClasses) {
  seeds_.insert(seeds_.end(), std::begin(syntax::kScripts), std::end(syntax::kScripts));
  for (std::string& seed : seeds_) {
    drop_expectations(seed);
    scripts_.push_back(tokenize(seed));
    for (const std::string& token : scripts_.back()) pools_[class_of(token)].push_back(token);
  }
  for (int i = 0; i < 20; ++i) {
    pools_[kNumber].insert(pools_[kNumber].end(), std::begin(kNumbers), std::end(kNumbers));
    pools_[kName].insert(pools_[kName].end(), std::begin(kNames), std::end(kNames));
  }
}

std::string ScriptMutator::next(Random& random) const { return changed(random, seeds_[below(random, seeds_.size())]); }

std::string ScriptMutator::changed(Random& random, const std::string& script) const {
  std::string text = script;
  drop_expectations(text);
  return below(random, 4) == 0 ? by_bytes(random, std::move(text)) : by_pieces(random, tokenize(text));
}

std::string ScriptMutator::by_bytes(Random& random, std::string text) const {
  const auto piece = [&](const std::string& of) {
    return of.empty() ? std::string() : of.substr(below(random, of.size()), below(random, 20) + 1);
  };
  for (uint32_t n = below(random, 8) + 1; n > 0; --n) {
    const uint32_t at = below(random, text.size() + 1);
    switch (below(random, 5)) {
      case 0: text.erase(at, below(random, 4) + 1); break;
      case 1: text.insert(at, 1, kBytes[below(random, sizeof kBytes - 1)]); break;
      case 2: text.insert(at, piece(text)); break;
      case 3: text.insert(at, piece(seeds_[below(random, seeds_.size())])); break;
      default:
        if (at < text.size())
          text[at] = below(random, 8) == 0 ? static_cast<char>(random()) : kBytes[below(random, sizeof kBytes - 1)];
    }
  }
  return text;
}

const std::string& ScriptMutator::any_token(Random& random, const std::string& like) const {
  const auto& pool = pools_[class_of(like)];
  return pool.empty() ? like : pool[below(random, pool.size())];
}

// The inside of a pair of brackets, or one of the parts that commas and semicolons make of it; empty where there is
// none.
ScriptMutator::Range ScriptMutator::any_group(Random& random, const std::vector<std::string>& tokens) const {
  constexpr std::string_view kOpen = "([{", kClose = ")]}";
  std::vector<Range> groups;
  std::vector<size_t> open, part;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const char c = tokens[i].size() == 1 ? tokens[i][0] : ' ';
    if (kOpen.find(c) != std::string_view::npos) {
      open.push_back(i + 1);
      part.push_back(i + 1);
    } else if (!open.empty() && kClose.find(c) != std::string_view::npos) {
      if (part.back() != open.back()) groups.push_back({part.back(), i});
      groups.push_back({open.back(), i});
      open.pop_back();
      part.pop_back();
    } else if (!open.empty() && (c == ',' || c == ';')) {
      groups.push_back({part.back(), i});
      part.back() = i + 1;
    }
  }
  return groups.empty() ? Range{} : groups[below(random, groups.size())];
}

void ScriptMutator::change_piece(Random& random, std::vector<std::string>& tokens) const {
  if (tokens.empty()) return;
  const size_t at = below(random, tokens.size());
  const auto& other = scripts_[below(random, scripts_.size())];
  const Range mine = any_group(random, tokens), its = any_group(random, other);
  const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(mine.begin);
  const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(mine.end);
  const std::vector<std::string> theirs(other.begin() + static_cast<std::ptrdiff_t>(its.begin),
                                        other.begin() + static_cast<std::ptrdiff_t>(its.end));
  const std::vector<std::string> ours(begin, end);
  switch (below(random, 9)) {
    case 0:
    case 1:
    case 2:
    case 3: tokens[at] = any_token(random, tokens[at]); break;
    case 4: tokens.insert(tokens.erase(begin, end), theirs.begin(), theirs.end()); break;
    case 5: {  // before the group, with the mark that separates it
      auto inserted = tokens.insert(begin, theirs.begin(), theirs.end());
      const bool is_statement = std::ranges::find(theirs, "=") != theirs.end() || below(random, 2) == 0;
      tokens.insert(inserted + static_cast<std::ptrdiff_t>(theirs.size()), is_statement ? ";" : ",");
      break;
    }
    case 6: tokens.erase(begin, end); break;
    case 7: {  // an operation more
      auto inserted =
          tokens.insert(tokens.begin() + static_cast<std::ptrdiff_t>(mine.end), theirs.begin(), theirs.end());
      const auto& operators = pools_[kBinary];
      if (!operators.empty()) tokens.insert(inserted, operators[below(random, operators.size())]);
      break;
    }
    default: tokens.insert(begin, ours.begin(), ours.end()); break;
  }
}

std::string ScriptMutator::by_pieces(Random& random, std::vector<std::string> tokens) const {
  if (below(random, 4) == 0) {
    const auto& more = scripts_[below(random, scripts_.size())];
    tokens.push_back("\n");
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  constexpr size_t kMaxTokens = 3000;
  for (uint32_t n = 1 + below(random, below(random, 2) == 0 ? 1 : 5); n > 0 && tokens.size() < kMaxTokens; --n)
    change_piece(random, tokens);
  return join(tokens);
}

}  // namespace espy::fuzz
