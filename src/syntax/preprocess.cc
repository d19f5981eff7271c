#include "syntax/preprocess.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "syntax/parse_c.h"

namespace espy::syntax {

Directive read_directive(std::string_view text, uint32_t offset) {
  size_t end = offset;
  while (end < text.size() && text[end] != '\n') {
    const bool joined = text[end] == '\\' && end + 1 < text.size() && text[end + 1] == '\n';
    end += joined ? 2 : 1;
  }
  Directive out;
  out.where = {offset, static_cast<uint32_t>(end)};
  std::string_view line = trim(text.substr(offset + 1, end - offset - 1));
  const auto word_end = std::find_if_not(line.begin(), line.end(), is_word);
  out.word = line.substr(0, static_cast<size_t>(word_end - line.begin()));
  out.rest = trim(line.substr(out.word.size()));
  return out;
}

namespace {

// `text` on one line, its comments and joined line ends each a space. Strings stay as they are.
std::string one_line(std::string_view text) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("\\\n")) {
      out += ' ';
      ++i;
    } else if (quote != 0 && text[i] == '\\' && i + 1 < text.size()) {
      out.append(rest.substr(0, 2));
      ++i;
    } else if (quote != 0 || text[i] == '"' || text[i] == '\'') {
      quote = quote == 0 ? text[i] : quote == text[i] ? '\0' : quote;
      out += text[i];
    } else if (rest.starts_with("//")) {
      break;
    } else if (rest.starts_with("/*")) {
      const size_t close = rest.find("*/", 2);
      if (close == std::string_view::npos) break;
      out += ' ';
      i += close + 1;
    } else {
      out += text[i];
    }
  }
  return std::string(trim(out));
}

}  // namespace

DefineText read_define(std::string_view rest) {
  DefineText out;
  const auto name_end = std::find_if_not(rest.begin(), rest.end(), is_word);
  out.name = rest.substr(0, static_cast<size_t>(name_end - rest.begin()));
  rest.remove_prefix(out.name.size());
  // Only a parenthesis that touches the name begins parameters.
  if (rest.starts_with('(')) {
    const size_t close = rest.find(')');
    if (close != std::string_view::npos) {
      out.is_function_like = true;
      const std::string_view list = trim(rest.substr(1, close - 1));
      if (!list.empty()) {
        for (const std::string_view name : split(list, ',')) out.parameters.emplace_back(trim(name));
      }
      rest.remove_prefix(close + 1);
    }
  }
  out.body = one_line(rest);
  return out;
}

namespace {

class Conditionals {
 public:
  Conditionals(std::string_view text, MacroBodies known) : text_(text), defines_(std::move(known)) {}

  Preprocessed run() {
    for (size_t at = text_.find('#'); at != std::string_view::npos; at = text_.find('#', at)) {
      if (!begins_line(at) || (at == 0 && text_.starts_with("#!")) || in_comment(at)) {
        ++at;
        continue;
      }
      const Directive directive = read_directive(text_, static_cast<uint32_t>(at));
      line(directive);
      at = directive.where.end;
    }
    for (const Level& level : levels_) problem(level.opened, "unterminated-condition", "this has no `#endif`");
    if (hidden_since_) out_.hidden.push_back({*hidden_since_, static_cast<uint32_t>(text_.size())});
    return std::move(out_);
  }

 private:
  struct Level {
    HiddenRange opened;
    bool outside_active;  // is the text around it read?
    bool taken;           // was one of its branches?
    bool active;          // is the current one?
  };

  bool active() const { return levels_.empty() || levels_.back().active; }
  void problem(HiddenRange where, std::string_view id, std::string_view message) {
    out_.problems.push_back({where, id, message});
  }

  bool begins_line(size_t at) const {
    while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t')) --at;
    return at == 0 || text_[at - 1] == '\n';
  }

  // Whether a block comment is open at `at`. Offsets only grow from call to call, so this reads the text once.
  bool in_comment(size_t at) {
    while (scanned_ < at) {
      const std::string_view rest = text_.substr(scanned_);
      if (in_block_comment_) {
        const size_t close = rest.find("*/");
        if (close == std::string_view::npos || scanned_ + close >= at) return true;
        in_block_comment_ = false;
        scanned_ += close + 2;
      } else if (rest[0] == '"') {
        scanned_ = string_end(scanned_);
      } else if (rest.starts_with("//")) {
        scanned_ = std::min(text_.find('\n', scanned_), text_.size());
      } else if (rest.starts_with("/*") && (scanned_ == 0 || !continues_path(text_[scanned_ - 1]))) {
        in_block_comment_ = true;
        scanned_ += 2;
      } else {
        ++scanned_;
      }
    }
    return in_block_comment_;
  }

  // `/lib/*:f` in an attach point opens no comment.
  static bool continues_path(char c) { return is_word(c) || c == '/' || c == ':' || c == '.' || c == '-' || c == '*'; }

  size_t string_end(size_t at) const {
    for (++at; at < text_.size() && text_[at] != '\n'; ++at) {
      if (text_[at] == '"') return at + 1;
      if (text_[at] == '\\') ++at;
    }
    return std::min(at, text_.size());
  }

  void line(const Directive& directive) {
    const std::string_view word = directive.word;
    if (word == "if" || word == "ifdef" || word == "ifndef") return open(directive);
    if (word == "elif" || word == "else" || word == "endif") return next_branch(directive);
    if (!active()) return;
    if (word == "define") {
      const DefineText define = read_define(directive.rest);
      defines_[std::string(define.name)] = define.body;
    } else if (word == "undef" || word == "pragma") {
      if (word == "undef") defines_.erase(std::string(directive.rest));
      out_.hidden.push_back(directive.where);
    }
  }

  void open(const Directive& directive) {
    const bool outside = active();
    const bool yes = outside && test(directive);
    levels_.push_back({directive.where, outside, yes, yes});
    update(directive, outside);
  }

  void next_branch(const Directive& directive) {
    if (levels_.empty()) {
      problem(directive.where, "condition-without-if", "there is no `#if` before this");
      out_.hidden.push_back(directive.where);
      return;
    }
    const bool before = active();
    Level& level = levels_.back();
    if (directive.word == "endif") {
      levels_.pop_back();
    } else {
      level.active = level.outside_active && !level.taken && (directive.word == "else" || test(directive));
      level.taken |= level.active;
    }
    update(directive, before);
  }

  // Hides the directive, and all that follows it while `active()` is false.
  void update(const Directive& directive, bool before) {
    if (before) hidden_since_ = directive.where.begin;
    if (!active()) return;
    out_.hidden.push_back({hidden_since_.value_or(directive.where.begin), directive.where.end});
    hidden_since_.reset();
  }

  bool test(const Directive& directive) {
    const std::string condition = read_define("X " + std::string(directive.rest)).body;
    if (directive.word == "ifdef") return defines_.contains(condition);
    if (directive.word == "ifndef") return !defines_.contains(condition);
    lookups_left_ = 10'000;  // macros that name others twice are worth billions of lookups
    const auto value = evaluate_constant(condition, scope(0));
    if (!value) problem(directive.where, "bad-condition", "cannot parse this condition");
    return value.value_or(0) != 0;
  }

  // As in C, a name that is not defined is 0.
  ConstantScope scope(int depth) {
    constexpr int kMaxDepth = 20;
    return {.value = [this, depth](std::string_view name) -> std::optional<int64_t> {
              const auto define = defines_.find(name);
              if (define == defines_.end()) return 0;
              if (depth > kMaxDepth || --lookups_left_ < 0) return std::nullopt;
              return evaluate_constant(define->second, scope(depth + 1));
            },
            .is_defined = [this](std::string_view name) { return defines_.contains(name); }};
  }

  std::string_view text_;
  Preprocessed out_;
  MacroBodies defines_;
  std::vector<Level> levels_;
  std::optional<uint32_t> hidden_since_;
  size_t scanned_ = 0;
  bool in_block_comment_ = false;
  int lookups_left_ = 0;  // of macros, for the current condition
};

}  // namespace

Preprocessed preprocess(std::string_view text, MacroBodies known) {
  if (text.find('#') == std::string_view::npos) return {};
  return Conditionals(text, std::move(known)).run();
}

}  // namespace espy::syntax
