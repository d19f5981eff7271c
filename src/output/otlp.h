// Parts of OTLP/JSON, the JSON form of OpenTelemetry's protocol: 64-bit integers are strings, ids are hexadecimal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "output/format.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/spans.h"
#include "output/value.h"

namespace espy::output {

// A list of objects, of attributes or of other values.
class OtlpList : public JsonList {
 public:
  OtlpList() : JsonList(",") {}

  using JsonList::add;
  // Adds an attribute.
  void add(std::string_view key, std::string_view any_value);
  void add_text(std::string_view key, std::string_view text);
  void add_number(std::string_view key, int64_t number);
};

// AnyValue: {"intValue":"5"}.
std::string otlp_value(const Value& value, const TextStyle& style);

// The context of W3C that a span names by its arguments: the trace that it belongs to, and the span above it.
struct TraceContext {
  std::string trace_id;   // 32 hexadecimal digits; "" if there is none
  std::string parent_id;  // 16; "" if there is none
};
// True for the names of arguments with the context: "traceparent", "trace_id", "parent_span_id".
bool is_trace_context(std::string_view argument);
// An id of the wrong length, or of zeros only, is not an id.
TraceContext trace_context_of(const SpanEvent& event);

// A Metric of the map as it is at `now_ns`, with values since `start_ns`, times since the epoch. "" if its values are
// neither numbers nor histograms.
std::string otlp_metric(const MapView& map, uint64_t start_ns, uint64_t now_ns, const TextStyle& style);

}  // namespace espy::output
