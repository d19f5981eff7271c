// Is a text JSON?
#pragma once

#include <cstdint>
#include <string_view>

#include "base/strings.h"

namespace espy::fuzz {

// Reads one value and says whether it is well formed (RFC 8259), and UTF-8.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  bool is_value_alone() { return value() && (skip_blanks(), at_ == text_.size()); }

 private:
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool value() {
    skip_blanks();
    if (at_ >= text_.size()) return false;
    const char c = text_[at_];
    if (c == '{') return members();
    if (c == '[') return items();
    if (c == '"') return string();
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    return word("true") || word("false") || word("null");
  }
  bool items() {
    if (take('['); take(']')) return true;
    do {
      if (!value()) return false;
    } while (take(','));
    return take(']');
  }
  bool members() {
    if (take('{'); take('}')) return true;
    do {
      skip_blanks();
      if (!string() || !take(':') || !value()) return false;
    } while (take(','));
    return take('}');
  }
  bool string() {
    if (at_ >= text_.size() || text_[at_++] != '"') return false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const size_t length = utf8_length(text_.substr(at_));
      if (length == 0 || static_cast<unsigned char>(c) < 0x20) return false;
      at_ += length - 1;
      if (c == '"') return ++at_, true;
      if (c != '\\') continue;
      if (++at_ >= text_.size()) return false;
      if (text_[at_] == 'u') {
        if (text_.substr(at_ + 1, 4).find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
          return false;
        at_ += 4;
      } else if (std::string_view("\"\\/bfnrt").find(text_[at_]) == std::string_view::npos)
        return false;
    }
    return false;
  }
  size_t digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ - begin;
  }
  bool number() {
    if (text_[at_] == '-') ++at_;
    const bool is_zero = at_ < text_.size() && text_[at_] == '0';
    const size_t whole = digits();
    if (whole == 0 || (is_zero && whole > 1)) return false;
    if (at_ < text_.size() && text_[at_] == '.' && (++at_, digits() == 0)) return false;
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      if (digits() == 0) return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace espy::fuzz
