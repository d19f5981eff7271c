// printf of the language: a format string and Values to text (spec §11).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "output/decode.h"
#include "output/value.h"
#include "spec/config.h"

namespace espy::output {

using spec::SpanLayout;

struct TextStyle {
  std::string truncation_trailer = "..";
  bool has_zeros = true;   // members of structs that are all zeros are shown
  bool is_c = false;       // structs as C initialises them, a line a member
  uint32_t max_depth = 0;  // of structs within structs; 0: any
  uint32_t max_items = 0;  // of arrays and structs; 0: any
  SpanLayout span_layout = SpanLayout::kTree;
};

// Whether nothing but zeros was there.
bool is_zero(const Value& value);

// One conversion of a format string, for the checker and the formatter alike.
struct Conversion {
  std::string flags;          // of "-+ #0"
  int width = -1;             // -1: none, -2: `*`
  int precision = -1;         // the same
  std::string length;         // "ll"
  std::string conversion;     // "d", "s", "rx"
  size_t begin = 0, end = 0;  // in the format string
};

// Splits a format; the error says what is wrong with it, `code` is the byte offset.
Result<std::vector<Conversion>> parse_format(std::string_view format);

// A parsed format, ready to be used many times: made once per event schema, as printf runs millions of times.
class Formatter {
 public:
  static Result<Formatter> create(std::string_view format);
  void append(std::string& out, std::span<const Value> values, const TextStyle& style) const;
  // The same from a record's fields, without making Values of plain numbers and strings.
  void append_record(std::string& out, const DecodeContext& context, const program::EventSchema& schema,
                     size_t first_field, std::span<const std::byte> record, const TextStyle& style) const;

 private:
  std::vector<std::string> literals_;  // literals_[i] precedes conversions_[i]
  std::vector<Conversion> conversions_;
};

// `%s` of any value, and what text output prints for it. Behind a line break stand `indent` blanks.
std::string to_text(const Value& value, const TextStyle& style, uint32_t indent = 0);

}  // namespace espy::output
