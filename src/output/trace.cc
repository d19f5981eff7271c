// The Trace Event Format of chrome://tracing and Perfetto: one JSON array of events, a line each.
//
// Spans are B and E events, which nest by thread; instants are i, counters C. Unmatched B and E events would corrupt
// the rest of the thread: an end without a begin is written as an instant, and CallTrees ends each begin; both have the
// anomaly as the argument "flaw". Times are microseconds since boot, with three decimals. Other output of a script goes
// to stderr.
//
// The format allows an array without its closing bracket, as a killed run leaves it.
#include <fmt/format.h>

#include <map>
#include <set>

#include "output/json.h"
#include "output/perfetto.h"
#include "output/sink.h"
#include "output/text_fallback_sink.h"

namespace espy::output {

namespace {

char phase_of(const SpanEvent& event) {
  if (event.anomaly == SpanAnomaly::kNoBegin) return 'i';
  switch (event.kind) {
    case SpanKind::kEnter: return 'B';
    case SpanKind::kExit: return 'E';
    case SpanKind::kCounter: return 'C';
    case SpanKind::kInstant: break;
  }
  return 'i';
}

class TraceSink final : public TextFallbackSink {
 public:
  TraceSink(Writer& out, TextStyle style, bool quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {}

  void span(const SpanEvent& event) override {
    name_threads(event);
    const char phase = phase_of(event);
    std::string out =
        fmt::format("{{\"ph\":\"{}\",\"ts\":{}.{:03},\"pid\":{},\"tid\":{},\"name\":{}", phase, event.time_ns / 1000,
                    event.time_ns % 1000, event.pid, thread_of(event), quoted(event.name));
    if (phase == 'i') out += ",\"s\":\"t\"";
    out += ",\"args\":" + arguments_of(event) + "}";
    put(out);
  }

  void end() override {
    out_.write(is_first_ ? "[\n]\n" : "\n]\n");
    is_first_ = true;
  }

 private:
  // All idle threads have the id 0: the CPU's number tells them apart.
  static uint32_t thread_of(const SpanEvent& event) { return event.tid != 0 ? event.tid : event.cpu; }

  std::string arguments_of(const SpanEvent& event) const {
    std::string out = arguments_json(event, style_);
    out.pop_back();
    const auto add = [&](std::string_view name, std::string_view text) {
      out += fmt::format("{}{}: {}", out.size() > 1 ? ", " : "", quoted(name), quoted(text));
    };
    const bool says_more = event.text != event.name && event.is_seen();
    if (says_more && !event.text.empty()) add(event.kind == SpanKind::kExit ? "result" : "text", event.text);
    if (event.anomaly != SpanAnomaly::kNone) add("flaw", anomaly_text(event.anomaly));
    return out + "}";
  }

  // Writes a thread's name when it is new or has changed. A process is named by its first or main thread.
  void name_threads(const SpanEvent& event) {
    const uint32_t tid = thread_of(event);
    std::string& thread = threads_[{event.pid, tid}];
    if (thread == event.comm) return;
    thread = event.comm;
    name("thread_name", event.pid, tid, event.comm);
    const bool is_new = processes_.insert(event.pid).second;
    if (is_new || event.pid == tid) name("process_name", event.pid, tid, event.comm);
  }

  void name(std::string_view what, uint32_t pid, uint32_t tid, const std::string& comm) {
    put(fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what, pid, tid,
                    quoted(comm)));
  }

  void put(const std::string& event) {
    out_.write(is_first_ ? "[\n" : ",\n");
    out_.write(event);
    is_first_ = false;
  }

  Writer& out_;
  TextStyle style_;
  bool is_first_ = true;
  std::map<std::pair<uint32_t, uint32_t>, std::string> threads_;  // by process and thread id: the name
  std::set<uint32_t> processes_;                                  // those that have a name
};

std::unique_ptr<Sink> make_trace_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<TraceSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kTraceSink = {
    .name = "trace",
    .doc = "spans for chrome://tracing and Perfetto, to FILE.pftrace in the format of Perfetto",
    .create = make_trace_sink,
    .binary_suffix = kPerfettoSuffix,
    .create_binary = make_perfetto_sink};

}  // namespace espy::output
