#include "output/otlp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "output/forwarding_sink.h"
#include "output/histogram.h"
#include "output/json.h"
#include "output/profile_formats.h"
#include "output/quantity.h"
#include "output/sink.h"
#include "program/layout.h"
#include "types/type.h"

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
  static std::string text(std::string_view text) { return fmt::format("{{\"stringValue\":{}}}", json_string(text)); }
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
  add(fmt::format("{{\"key\":{},\"value\":{}}}", json_string(key), any_value));
}

void OtlpList::add_text(std::string_view key, std::string_view text) {
  add(key, fmt::format("{{\"stringValue\":{}}}", json_string(text)));
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

// ---- Maps as metrics of OpenTelemetry: count() and sum() as sums since the map was last cleared, histograms with the
// bounds of their buckets, avg() and stats() as histograms of one bucket, other numbers as gauges.

namespace {

using types::Kind;

// UCUM
std::string_view unit_name(types::Unit unit) {
  switch (unit) {
    case types::Unit::kNone: return "";
    case types::Unit::kBytes: return "By";
    case types::Unit::kNanoseconds: return "ns";
    case types::Unit::kMicroseconds: return "us";
    case types::Unit::kMilliseconds: return "ms";
    case types::Unit::kSeconds: return "s";
  }
  return "";
}

// Counts by bucket. A bound is the greatest value of the bucket before it.
struct Buckets {
  OtlpList counts, bounds;
  uint64_t total = 0;

  void add(uint64_t count) {
    counts.add(fmt::format("\"{}\"", count));
    total += count;
  }
};

// `last_of`: the greatest value of a bucket; nullopt if it has none. Buckets at the ends that are empty are left out.
template <class LastOf>
std::string buckets(const std::vector<uint64_t>& all, const LastOf& last_of) {
  const BucketRange range = used_buckets(all);
  Buckets out;
  if (range.first <= range.last) {
    if (range.first > 0) {
      out.add(0);
      out.bounds.add(fmt::format("{}", *last_of(range.first - 1)));
    }
    for (size_t i = range.first; i <= range.last; ++i) {
      out.add(all[i]);
      if (const auto last = last_of(i)) out.bounds.add(fmt::format("{}", *last));
    }
    if (last_of(range.last)) out.add(0);
  }
  return fmt::format("\"count\":\"{}\",\"bucketCounts\":[{}],\"explicitBounds\":[{}]", out.total, out.counts.text(),
                     out.bounds.text());
}

std::string number_text(const StatsValue& stats) {
  return stats.is_signed ? std::to_string(stats.total) : std::to_string(static_cast<uint64_t>(stats.total));
}

// What a data point has apart from its times and attributes; "" for values that are no numbers.
struct ToPoint {
  std::string operator()(bool v) const { return fmt::format("\"asInt\":\"{}\"", v ? 1 : 0); }
  std::string operator()(int64_t v) const { return fmt::format("\"asInt\":\"{}\"", v); }
  std::string operator()(uint64_t v) const {
    return v <= INT64_MAX ? (*this)(static_cast<int64_t>(v)) : fmt::format("\"asDouble\":{}", v);
  }
  std::string operator()(const EnumValue& v) const { return (*this)(v.number); }
  std::string operator()(const StatsValue& v) const {
    return fmt::format("\"count\":\"{}\",\"sum\":{}", v.count, number_text(v));
  }
  std::string operator()(const HistValue& v) const {
    return buckets(v.buckets, [&](size_t i) -> std::optional<int64_t> {
      if (i + 1 == v.buckets.size()) return std::nullopt;
      return static_cast<int64_t>(program::hist_bucket_start(static_cast<uint32_t>(i + 1), v.bits) - 1);
    });
  }
  std::string operator()(const LhistValue& v) const {
    return buckets(v.buckets, [&](size_t i) -> std::optional<int64_t> {
      if (i + 1 == v.buckets.size()) return std::nullopt;
      return v.end_of(i) - 1;
    });
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

std::string data_point(const OtlpList& attributes, uint64_t start_ns, uint64_t time_ns, std::string_view value) {
  return fmt::format("{{\"attributes\":[{}],\"startTimeUnixNano\":\"{}\",\"timeUnixNano\":\"{}\",{}}}",
                     attributes.text(), start_ns, time_ns, value);
}

OtlpList attributes_of(const MapView& map, const Value& key, const TextStyle& style) {
  OtlpList out;
  if (map.is_scalar) return out;
  const KeyStack parts = split_key(key, map.key_names);
  TextStyle of_stacks = style;
  of_stacks.is_for_terminal = true;
  for (const auto& [name, value] : parts.labels) out.add(name, otlp_value(*value, style));
  for (const StackValue* stack : parts.stacks)
    out.add_text(stack->is_user ? "ustack" : "kstack", to_text({*stack}, of_stacks));
  return out;
}

// The kind of metric, and what it has before its data points.
std::string head_of(const MapView& map) {
  constexpr std::string_view kCumulative = "\"aggregationTemporality\":2,";
  switch (map.kind) {
    case Kind::kCount: return fmt::format("\"sum\":{{{}\"isMonotonic\":true,", kCumulative);
    case Kind::kSum: return fmt::format("\"sum\":{{{}\"isMonotonic\":{},", kCumulative, !map.is_signed);
    case Kind::kHist:
    case Kind::kLhist:
    case Kind::kAvg:
    case Kind::kStats: return fmt::format("\"histogram\":{{{}", kCumulative);
    default: return "\"gauge\":{";
  }
}

}  // namespace

std::string otlp_metric(const MapView& map, uint64_t start_ns, uint64_t now_ns, const TextStyle& style) {
  OtlpList points;
  std::unordered_map<std::string, int64_t> used;
  for (const MapEntry& entry : shown_entries(map)) {
    OtlpList attributes = attributes_of(map, entry.key, style);
    // Several keys can have the same texts, as addresses of one function. Points of the same attributes would be one.
    if (const int64_t number = ++used[attributes.text()]; number > 1) attributes.add_number("espy.number", number);
    if (const auto* series = std::get_if<TseriesValue>(&entry.value.node)) {
      for (const TseriesPoint& point : series->points)
        if (point.value)
          points.add(
              data_point(attributes, point.start_ns, point.start_ns + series->interval_ns,
                         series->is_signed ? ToPoint()(*point.value) : ToPoint()(static_cast<uint64_t>(*point.value))));
      continue;
    }
    const std::string point = std::visit(ToPoint(), divided(entry.value, map.divisor).node);
    if (!point.empty()) points.add(data_point(attributes, start_ns, now_ns, point));
  }
  if (points.empty()) return "";
  const std::string_view unit = map.kind == Kind::kCount ? "1" : unit_name(types::unit_of(map.name));
  return fmt::format("{{\"name\":{},\"unit\":\"{}\",{}\"dataPoints\":[{}]}}}}",
                     json_string(types::plain_name(map.name, "value")), unit, head_of(map), points.text());
}

// ---- OTLP/JSON, a line each, as the file receiver of the OpenTelemetry collector reads them: spans, metrics and logs.
//
// Spans belong to the process that they are of, with its name as that of the service; metrics and logs to espy. A span
// is written once it has ended. The outermost span of a thread begins a trace, unless its arguments name one
// (otlp.h); those within it follow.

namespace {

constexpr uint64_t kLongestWaitNs = 1'000'000'000;  // of what is ready to be written
constexpr size_t kMostWaitingBytes = 64 * 1024;     // also of a line
constexpr std::string_view kScope = "\"scope\":{\"name\":\"espy\",\"version\":\"" ESPY_VERSION "\"}";

enum Severity : int { kInfo = 9, kWarn = 13, kError = 17 };

std::string_view severity_name(Severity severity) {
  return severity == kInfo ? "INFO" : severity == kWarn ? "WARN" : "ERROR";
}

struct OpenSpan {
  std::string trace_id, span_id, parent_id;
  SpanEvent begin;
  OtlpList events;
};

class OtlpSink final : public TextFallbackSink {
 public:
  OtlpSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {}

  void begin(const RunInfo& run) override {
    run_ = run;
    host_ = run.host();
    last_write_ns_ = run_.now_ns();
    start_ns_ = run_.wall_ns(last_write_ns_);
  }

  // Lines are records, however many calls made them.
  void text(std::string_view kind, std::string_view text) override {
    std::string& line = lines_[std::string(kind)];
    line += text;
    for (size_t end = line.find('\n'); end != line.npos; end = line.find('\n')) {
      add_line(kind, line.substr(0, end));
      line.erase(0, end + 1);
    }
    if (line.size() < kMostWaitingBytes) return;
    add_line(kind, line);
    line.clear();
  }

  void value(const Value& value) override { add_log(kInfo, otlp_value(value, style_), {}); }

  void span(const SpanEvent& event) override {
    std::vector<OpenSpan>& open = threads_[thread_of(event)];
    if (event.kind == SpanKind::kCounter) {
      add_counter(event);
    } else if (event.kind == SpanKind::kEnter) {
      enter(open, event);
    } else if (event.kind == SpanKind::kExit && event.anomaly != SpanAnomaly::kNoBegin && !open.empty()) {
      exit(open.back(), event);
      open.pop_back();
    } else {
      add_instant(open, event);
    }
    if (open.empty()) threads_.erase(thread_of(event));
  }

  void map(const MapView& map) override {
    if (shown_entries(map).empty()) return;
    const auto cleared = cleared_.find(map.name);
    const std::string metric =
        otlp_metric(map, cleared == cleared_.end() ? start_ns_ : cleared->second, now_ns(), style_);
    if (metric.empty()) return TextFallbackSink::map(map);
    metrics_.add(metric);
  }
  void map_cleared(std::string_view name) override { cleared_[std::string(name)] = now_ns(); }

  void lost(uint64_t events) override {
    add_log(kWarn, text_value(fmt::format("Lost {} events", events)), {});
    TextFallbackSink::lost(events);
  }
  void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line, uint32_t column,
               uint32_t end_column) override {
    OtlpList attributes;
    if (!file.empty()) {
      attributes.add_text("code.file.path", file);
      attributes.add_number("code.line.number", line);
    }
    if (text.ends_with('\n')) text.remove_suffix(1);
    add_log(kind == "errorf" ? kError : kWarn, text_value(text), attributes);
    TextFallbackSink::message(kind, text, file, line, column, end_column);
  }

  void batch_end() override {
    const size_t waiting = logs_.size_bytes() + metrics_.size_bytes() + span_bytes_;
    if (waiting == 0) return;
    const uint64_t now_ns = run_.now_ns();
    if (waiting >= kMostWaitingBytes || now_ns - last_write_ns_ >= kLongestWaitNs) write_waiting(now_ns);
  }

  void finish() override {
    for (const auto& [kind, line] : lines_)
      if (!line.empty()) add_line(kind, line);
    lines_.clear();
    write_waiting(run_.now_ns());
  }

 private:
  struct Process {
    std::string name;
    OtlpList spans;
  };

  uint64_t now_ns() const { return run_.wall_ns(run_.now_ns()); }
  static std::pair<uint32_t, uint32_t> thread_of(const SpanEvent& event) {
    return {event.pid, event.tid != 0 ? event.tid : event.cpu};
  }
  static std::string text_value(std::string_view text) {
    return fmt::format("{{\"stringValue\":{}}}", json_string(text));
  }
  std::string random_id() const { return fmt::format("{:016x}", run_.random()); }

  // ---- Spans

  void enter(std::vector<OpenSpan>& open, const SpanEvent& event) {
    OpenSpan span{"", random_id(), "", event, {}};
    const TraceContext context = trace_context_of(event);
    if (!context.trace_id.empty()) {
      span.trace_id = context.trace_id;
      span.parent_id = context.parent_id;
    } else if (!open.empty()) {
      span.trace_id = open.back().trace_id;
      span.parent_id = open.back().span_id;
    } else {
      span.trace_id = random_id() + random_id();
    }
    open.push_back(std::move(span));
  }

  void add_arguments(OtlpList& out, const SpanEvent& event) const {
    for (const auto& [name, value] : event.arguments)
      if (!is_trace_context(name)) out.add(name, otlp_value(value, style_));
    if (event.text != event.name && event.is_seen() && !event.text.empty())
      out.add_text(event.kind == SpanKind::kExit ? "result" : "text", event.text);
    if (event.anomaly != SpanAnomaly::kNone) out.add_text("flaw", anomaly_text(event.anomaly));
  }

  void exit(const OpenSpan& span, const SpanEvent& event) {
    OtlpList attributes;
    attributes.add_number("thread.id", event.tid);
    attributes.add_text("thread.name", event.comm);
    add_arguments(attributes, span.begin);
    add_arguments(attributes, event);
    const std::string parent = span.parent_id.empty() ? "" : fmt::format("\"parentSpanId\":\"{}\",", span.parent_id);
    Process& process = processes_[event.pid];
    if (process.name.empty() || event.pid == event.tid) process.name = event.comm;
    const size_t before = process.spans.size_bytes();
    process.spans.add(
        fmt::format("{{\"traceId\":\"{}\",\"spanId\":\"{}\",{}\"name\":{},\"kind\":1,\"startTimeUnixNano\":\"{}\","
                    "\"endTimeUnixNano\":\"{}\",\"attributes\":[{}],\"events\":[{}],\"status\":{{}}}}",
                    span.trace_id, span.span_id, parent, json_string(span.begin.name), run_.wall_ns(span.begin.time_ns),
                    run_.wall_ns(event.time_ns), attributes.text(), span.events.text()));
    span_bytes_ += process.spans.size_bytes() - before;
  }

  // Within a span it is an event of the span, otherwise a log record.
  void add_instant(std::vector<OpenSpan>& open, const SpanEvent& event) {
    OtlpList attributes;
    if (!open.empty()) {
      add_arguments(attributes, event);
      open.back().events.add(fmt::format("{{\"timeUnixNano\":\"{}\",\"name\":{},\"attributes\":[{}]}}",
                                         run_.wall_ns(event.time_ns), json_string(event.name), attributes.text()));
      return;
    }
    attributes.add_number("process.pid", event.pid);
    attributes.add_number("thread.id", event.tid);
    attributes.add_text("thread.name", event.comm);
    add_arguments(attributes, event);
    add_log(kInfo, text_value(event.text.empty() ? event.name : event.text), attributes, run_.wall_ns(event.time_ns));
  }

  void add_counter(const SpanEvent& event) {
    MapView map;
    map.name = event.name;
    const std::string names[] = {"process.pid", "thread.name"};
    map.key_names = names;
    TupleValue key{{{uint64_t{event.pid}}, {StringValue{event.comm}}}};
    if (!event.arguments.empty()) map.entries.push_back({{std::move(key)}, event.arguments.front().second});
    const uint64_t time_ns = run_.wall_ns(event.time_ns);
    if (const std::string metric = otlp_metric(map, time_ns, time_ns, style_); !metric.empty()) metrics_.add(metric);
  }

  // ---- Logs

  void add_line(std::string_view kind, std::string_view line) {
    OtlpList attributes;
    if (kind != "printf") attributes.add_text("builtin", kind);
    add_log(kInfo, text_value(line), attributes);
  }

  // `time_ns`: of the event, since the epoch; 0 if only the time at which it was seen is known.
  void add_log(Severity severity, std::string_view body, const OtlpList& attributes, uint64_t time_ns = 0) {
    const std::string time = time_ns == 0 ? "" : fmt::format("\"timeUnixNano\":\"{}\",", time_ns);
    logs_.add(
        fmt::format("{{{}\"observedTimeUnixNano\":\"{}\",\"severityNumber\":{},\"severityText\":\"{}\",\"body\":{},"
                    "\"attributes\":[{}]}}",
                    time, now_ns(), static_cast<int>(severity), severity_name(severity), body, attributes.text()));
  }

  // ---- Lines

  std::string resource(std::string_view service, uint32_t pid) const {
    OtlpList attributes;
    attributes.add_text("service.name", service);
    attributes.add_text("host.name", host_);
    if (pid != 0) attributes.add_number("process.pid", pid);
    return fmt::format("\"resource\":{{\"attributes\":[{}]}}", attributes.text());
  }

  void write_records(std::string_view resources, std::string_view scopes, std::string_view records, OtlpList& list) {
    if (list.empty()) return;
    out_.write(fmt::format("{{\"{}\":[{{{},\"{}\":[{{{},\"{}\":[{}]}}]}}]}}\n", resources, resource("espy", 0), scopes,
                           kScope, records, list.text()));
    list = {};
  }

  void write_waiting(uint64_t now_ns) {
    last_write_ns_ = now_ns;
    OtlpList spans;
    for (const auto& [pid, process] : processes_)
      spans.add(fmt::format("{{{},\"scopeSpans\":[{{{},\"spans\":[{}]}}]}}", resource(process.name, pid), kScope,
                            process.spans.text()));
    if (!spans.empty()) out_.write(fmt::format("{{\"resourceSpans\":[{}]}}\n", spans.text()));
    processes_.clear();
    span_bytes_ = 0;
    write_records("resourceMetrics", "scopeMetrics", "metrics", metrics_);
    write_records("resourceLogs", "scopeLogs", "logRecords", logs_);
  }

  Writer& out_;
  TextStyle style_;
  RunInfo run_;
  std::string host_;
  uint64_t start_ns_ = 0, last_write_ns_ = 0;
  std::map<std::string, std::string> lines_;                                // by kind: text without its newline yet
  std::map<std::string, uint64_t, std::less<>> cleared_;                    // by map: when
  std::map<std::pair<uint32_t, uint32_t>, std::vector<OpenSpan>> threads_;  // outermost first
  std::map<uint32_t, Process> processes_;                                   // with spans to write
  size_t span_bytes_ = 0;
  OtlpList metrics_, logs_;
};

std::unique_ptr<Sink> make_otlp_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<OtlpSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kOtlpSink = {.name = "otlp",
                                      .doc = "spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON",
                                      .has_lines = true,
                                      .create = make_otlp_sink};

}  // namespace espy::output
