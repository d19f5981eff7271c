// OTLP/JSON, a line each, as the file receiver of the OpenTelemetry collector reads them: spans, metrics and logs.
//
// Spans belong to the process that they are of, with its name as that of the service; metrics and logs to espy. A span
// is written once it has ended. The outermost span of a thread begins a trace, unless its arguments name one
// (otlp_json.h); those within it follow.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "output/divide.h"
#include "output/json.h"
#include "output/otlp_json.h"
#include "output/sink.h"
#include "output/text_fallback_sink.h"

namespace espy::output {

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
  OtlpSink(Writer& out, TextStyle style, bool quiet)
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
  static std::string text_value(std::string_view text) { return fmt::format("{{\"stringValue\":{}}}", quoted(text)); }
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
                    span.trace_id, span.span_id, parent, quoted(span.begin.name), run_.wall_ns(span.begin.time_ns),
                    run_.wall_ns(event.time_ns), attributes.text(), span.events.text()));
    span_bytes_ += process.spans.size_bytes() - before;
  }

  // Within a span it is an event of the span, otherwise a log record.
  void add_instant(std::vector<OpenSpan>& open, const SpanEvent& event) {
    OtlpList attributes;
    if (!open.empty()) {
      add_arguments(attributes, event);
      open.back().events.add(fmt::format("{{\"timeUnixNano\":\"{}\",\"name\":{},\"attributes\":[{}]}}",
                                         run_.wall_ns(event.time_ns), quoted(event.name), attributes.text()));
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

std::unique_ptr<Sink> make_otlp_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<OtlpSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kOtlpSink = {.name = "otlp",
                                      .doc = "spans, metrics and logs for OpenTelemetry, as lines of OTLP/JSON",
                                      .create = make_otlp_sink};

}  // namespace espy::output
