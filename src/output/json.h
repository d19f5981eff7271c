// Values as JSON, for the formats based on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output/format.h"
#include "output/spans.h"
#include "output/value.h"

namespace espy::output {

// A JSON string, quoted and escaped. A byte that is not UTF-8 is the text `\xNN`, as exact_utf8() has it.
std::string quoted(std::string_view text);
// The text of a value as a JSON string. Texts of programs stay different where they differ.
std::string json_text(const Value& value, const TextStyle& style);

// `depth`: how many records enclose the value, for style.max_depth.
std::string json(const Value& value, const TextStyle& style, uint32_t depth = 0);

// The arguments of a span as a JSON object.
std::string arguments_json(const SpanEvent& event, const TextStyle& style);

}  // namespace espy::output
