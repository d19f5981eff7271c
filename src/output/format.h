// The language's printf: formats Values by a format string.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "output/decode.h"
#include "output/value.h"
#include "spec/config.h"
#include "types/type.h"

namespace espy::output {

using spec::SpanLayout;

struct TextStyle {
  std::string truncation_trailer = "..";
  bool has_zeros = true;   // shows struct members that are zero
  bool is_c = false;       // shows structs as C initializers, a member a line
  uint32_t max_depth = 0;  // of nested structs; 0: no limit
  uint32_t max_items = 0;  // of arrays and structs; 0: no limit
  SpanLayout span_layout = SpanLayout::kTree;
  bool has_units = false;                         // shows values of maps in the units that are known
  std::map<std::string, types::Unit> units = {};  // ... of maps whose names do not have them
  bool has_percentiles = false;                   // shows percentiles below histograms
  bool is_for_terminal = false;                   // escapes control characters in values from programs
  std::shared_ptr<const std::set<std::string>> own_texts =
      {};  // literals of the script, which may have control characters
};

class Writer;
// Returns the style, for a terminal if the writer writes to one.
TextStyle for_terminal(TextStyle style, const Writer& out);

// Return a name, and text from program memory, in this style. Lines of text stay lines.
std::string shown_name(std::string name, const TextStyle& style);
std::string shown_memory(std::string text, const TextStyle& style);

// True if the value was decoded from zeros only.
bool is_zero(const Value& value);

// One conversion of a format string.
struct Conversion {
  std::string flags;          // of "-+ #0"
  int width = -1;             // -1: none, -2: `*`
  int precision = -1;         // the same
  std::string length;         // "ll"
  std::string conversion;     // "d", "s", "rx"
  size_t begin = 0, end = 0;  // in the format string
};

// Returns the conversions of a format. Fails if one is for floating-point numbers, except `%f`; the error's `code` is
// the byte offset.
Result<std::vector<Conversion>> parse_format(std::string_view format);
// Returns the byte offsets of the `%` that begin no conversion and are printed as they are.
std::vector<size_t> stray_percents(std::string_view format);

// A value to format. Integers of up to 32 bits are converted as C's `int` unless the conversion has a length.
struct Argument {
  Value value;
  bool is_c_int = false;
};
bool is_c_int(const types::Type& type);

// A parsed format, for repeated use.
class Formatter {
 public:
  static Result<Formatter> create(std::string_view format);
  void append(std::string& out, std::span<const Argument> arguments, const TextStyle& style) const;
  // The same from a record's fields. Faster: plain numbers and strings are not converted to Values.
  void append_record(std::string& out, const DecodeContext& context, const program::EventSchema& schema,
                     size_t first_field, std::span<const std::byte> record, const TextStyle& style) const;

 private:
  std::vector<std::string> literals_;  // literals_[i] precedes conversions_[i]
  std::vector<Conversion> conversions_;
};

// A value as `%s` and text output show it. Lines after the first are indented by `indent` blanks.
std::string to_text(const Value& value, const TextStyle& style, uint32_t indent = 0);

void append_text(std::string& out, const Value& value, const TextStyle& style);

// The same of a key of a map, without the parentheses of a tuple: `a, 1`.
std::string key_text(const Value& key, const TextStyle& style);
void append_key_text(std::string& out, const Value& key, const TextStyle& style);

// ---- %gr: the allocator's gfp_t flags by name.

// "GFP_KERNEL|__GFP_ZERO"; bits without a name as a number. Bit numbers of include/linux/gfp_types.h since Linux 6.9;
// earlier releases have others.
std::string gfp_flags(uint64_t flags);

}  // namespace espy::output
