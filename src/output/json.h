// Values as JSON, for the formats that are made of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output/format.h"
#include "output/spans.h"
#include "output/value.h"

namespace espy::output {

// In quotation marks, with what JSON wants escaped.
std::string quoted(std::string_view text);

// `depth`: of records around the value, where the style limits them.
std::string json(const Value& value, const TextStyle& style, uint32_t depth = 0);

// The arguments of a span as an object.
std::string arguments_json(const SpanEvent& event, const TextStyle& style);

}  // namespace espy::output
