// Values as JSON, for the formats based on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "output/format.h"
#include "output/spans.h"
#include "output/value.h"

namespace espy::output {

// The elements of an array, or the members of an object, with `separator` between them. An element of fixed members is
// a format, which shows what the reader gets.
class JsonList {
 public:
  explicit JsonList(std::string_view separator = ", ") : separator_(separator) {}

  void add(std::string_view json) { text_.append(text_.empty() ? "" : separator_).append(json); }
  void add_member(std::string_view name, std::string_view json) { add(json_string(name).append(": ").append(json)); }

  bool empty() const { return text_.empty(); }
  size_t size_bytes() const { return text_.size(); }
  const std::string& text() const { return text_; }  // without brackets
  std::string array() const { return "[" + text_ + "]"; }
  std::string object() const { return "{" + text_ + "}"; }

 private:
  std::string_view separator_;
  std::string text_;
};

// The text of a value as a JSON string. Texts of programs stay different where they differ.
std::string json_text(const Value& value, const TextStyle& style);

// `depth`: how many records enclose the value, for style.max_depth.
std::string json(const Value& value, const TextStyle& style, uint32_t depth = 0);

// The arguments of a span as members of a JSON object.
JsonList span_arguments(const SpanEvent& event, const TextStyle& style);

}  // namespace espy::output
