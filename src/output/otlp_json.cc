#include "output/otlp_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <climits>

#include "base/printable.h"
#include "output/json.h"

namespace espy::output {

namespace {

constexpr size_t kTraceIdDigits = 32, kSpanIdDigits = 16;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string array(const std::vector<Value>& items, const TextStyle& style) {
  OtlpList values;
  for (const Value& item : items) values.add(otlp_value(item, style));
  return fmt::format("{{\"arrayValue\":{{\"values\":[{}]}}}}", values.text());
}

struct ToAnyValue {
  const TextStyle& style;
  std::string operator()(bool v) const { return fmt::format("{{\"boolValue\":{}}}", v); }
  std::string operator()(int64_t v) const { return fmt::format("{{\"intValue\":\"{}\"}}", v); }
  std::string operator()(uint64_t v) const {
    // intValue is signed.
    return v <= INT64_MAX ? (*this)(static_cast<int64_t>(v)) : fmt::format("{{\"stringValue\":\"{}\"}}", v);
  }
  std::string operator()(const BufferValue& v) const {
    return fmt::format("{{\"bytesValue\":\"{}\"}}", base64(v.bytes));
  }
  std::string operator()(const ListValue& v) const { return array(v.items, style); }
  std::string operator()(const TupleValue& v) const { return array(v.items, style); }
  std::string operator()(const RecentValue& v) const { return array(v.items, style); }
  std::string operator()(const RecordValue& v) const {
    OtlpList members;
    for (size_t i = 0; i < v.items.size(); ++i) members.add(v.names->members[i], otlp_value(v.items[i], style));
    return fmt::format("{{\"kvlistValue\":{{\"values\":[{}]}}}}", members.text());
  }
  std::string operator()(const StringValue& v) const { return text(exact_utf8(to_text({v}, style))); }
  std::string operator()(const TextValue& v) const { return text(exact_utf8(to_text({v}, style))); }
  template <class Other>
  std::string operator()(const Other& v) const {
    return text(to_text({v}, style));
  }

 private:
  static std::string text(std::string_view text) { return fmt::format("{{\"stringValue\":{}}}", quoted(text)); }
};

// The digits of an id: of a text as they are, of bytes, of a number.
std::string id_digits(const Value& value) {
  std::string out;
  const auto add_byte = [&](uint64_t byte) { out += fmt::format("{:02x}", byte & 0xff); };
  if (const auto* text = std::get_if<StringValue>(&value.node)) return text->text;
  if (const auto* number = std::get_if<uint64_t>(&value.node)) return fmt::format("{:016x}", *number);
  if (const auto* number = std::get_if<int64_t>(&value.node))
    return fmt::format("{:016x}", static_cast<uint64_t>(*number));
  if (const auto* buffer = std::get_if<BufferValue>(&value.node))
    for (const char byte : buffer->bytes) add_byte(static_cast<unsigned char>(byte));
  if (const auto* list = std::get_if<ListValue>(&value.node))
    for (const Value& item : list->items) {
      if (const auto* natural = std::get_if<uint64_t>(&item.node)) add_byte(*natural);
      if (const auto* whole = std::get_if<int64_t>(&item.node)) add_byte(static_cast<uint64_t>(*whole));
    }
  return out;
}

// Returns "" if it is no such id. Systems with trace ids of 64 bits have them in the lower half.
std::string valid_id(std::string digits, size_t length) {
  std::ranges::transform(digits, digits.begin(),
                         [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  if (length == kTraceIdDigits && digits.size() == kSpanIdDigits) digits.insert(0, kSpanIdDigits, '0');
  const bool is_id = digits.size() == length && digits.find_first_not_of("0123456789abcdef") == digits.npos &&
                     digits.find_first_not_of('0') != digits.npos;
  return is_id ? digits : "";
}

// "00-TRACE-PARENT-01"
TraceContext parse_traceparent(std::string_view text) {
  constexpr size_t kTraceAt = 3, kParentAt = kTraceAt + kTraceIdDigits + 1, kBytes = kParentAt + kSpanIdDigits;
  if (text.size() < kBytes || text[2] != '-' || text[kParentAt - 1] != '-') return {};
  return {valid_id(std::string(text.substr(kTraceAt, kTraceIdDigits)), kTraceIdDigits),
          valid_id(std::string(text.substr(kParentAt, kSpanIdDigits)), kSpanIdDigits)};
}

}  // namespace

void OtlpList::add(std::string_view key, std::string_view any_value) {
  add(fmt::format("{{\"key\":{},\"value\":{}}}", quoted(key), any_value));
}

void OtlpList::add_text(std::string_view key, std::string_view text) {
  add(key, fmt::format("{{\"stringValue\":{}}}", quoted(text)));
}

void OtlpList::add_number(std::string_view key, int64_t number) {
  add(key, fmt::format("{{\"intValue\":\"{}\"}}", number));
}

std::string otlp_value(const Value& value, const TextStyle& style) { return std::visit(ToAnyValue{style}, value.node); }

bool is_trace_context(std::string_view argument) {
  return argument == "traceparent" || argument == "trace_id" || argument == "parent_span_id";
}

TraceContext trace_context_of(const SpanEvent& event) {
  TraceContext out;
  for (const auto& [name, value] : event.arguments) {
    if (name == "traceparent") out = parse_traceparent(id_digits(value));
    if (name == "trace_id") out.trace_id = valid_id(id_digits(value), kTraceIdDigits);
    if (name == "parent_span_id") out.parent_id = valid_id(id_digits(value), kSpanIdDigits);
  }
  if (out.trace_id.empty()) out.parent_id.clear();
  return out;
}

}  // namespace espy::output
