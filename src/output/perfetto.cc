// Perfetto's own format, for ui.perfetto.dev and trace_processor: spans and instants on the tracks of their threads,
// counters, and the numbers of maps, each time they are printed, as counters. Other output of a script goes to stderr.
#include "output/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "output/collapse_stacks.h"
#include "output/divide.h"
#include "output/perfetto_packets.h"
#include "output/text_fallback_sink.h"

namespace espy::output {

namespace {

constexpr size_t kMostTracksOfMap = 1000;

// The value of a counter; nullopt for what is no number.
std::optional<int64_t> number_of(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value.node)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&value.node))
    return static_cast<int64_t>(std::min<uint64_t>(*number, INT64_MAX));
  if (const auto* truth = std::get_if<bool>(&value.node)) return *truth ? 1 : 0;
  if (const auto* stats = std::get_if<StatsValue>(&value.node))
    return stats->only_average ? average(*stats) : stats->total;
  return std::nullopt;
}

TrackEventType type_of(const SpanEvent& event) {
  if (event.anomaly == SpanAnomaly::kNoBegin) return TrackEventType::kInstant;
  switch (event.kind) {
    case SpanKind::kEnter: return TrackEventType::kSliceBegin;
    case SpanKind::kExit: return TrackEventType::kSliceEnd;
    case SpanKind::kCounter: return TrackEventType::kCounter;
    case SpanKind::kInstant: break;
  }
  return TrackEventType::kInstant;
}

class PerfettoSink final : public TextFallbackSink {
 public:
  PerfettoSink(Writer& out, TextStyle style, bool quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {
    style_.is_for_terminal = true;  // texts of programs are shown, and have to differ where the programs' do
  }

  void begin(const RunInfo& run) override {
    run_ = run;
    const uint64_t now_ns = run.now_ns();
    packets_.begin(now_ns, run.wall_ns(now_ns));
  }

  void span(const SpanEvent& event) override {
    const TrackEventType type = type_of(event);
    if (type == TrackEventType::kCounter) {
      const auto value = event.arguments.empty() ? std::nullopt : number_of(event.arguments.front().second);
      if (value) packets_.add_counter(event.time_ns, counter_track(process_track(event), event.name, false), *value);
    } else {
      const uint64_t track = thread_track(event);
      packets_.begin_event(type, track, type == TrackEventType::kSliceEnd ? "" : event.name);
      add_arguments(event);
      packets_.end_event(event.time_ns);
    }
    out_.write(packets_.take(false));
  }

  void map(const MapView& map) override {
    const auto entries = shown_entries(map);
    const bool is_counter = !entries.empty() && entries.size() <= kMostTracksOfMap && !has_stacks(map) &&
                            number_of(entries.at(0).value).has_value();
    if (!is_counter) return TextFallbackSink::map(map);
    const uint64_t now_ns = run_.now_ns();
    for (const MapEntry& entry : entries) {
      const std::string key = map.is_scalar ? "" : fmt::format("[{}]", to_text(entry.key, style_));
      const auto value = number_of(divided(entry.value, map.divisor));
      const bool is_count = map.kind == types::Kind::kCount;
      if (value) packets_.add_counter(now_ns, counter_track(0, std::string(map.name) + key, is_count), *value);
    }
    out_.write(packets_.take(false));
  }

  void finish() override { out_.write(packets_.take(true)); }

 private:
  struct Track {
    uint64_t id = 0;
    std::string name;
  };

  void add_arguments(const SpanEvent& event) {
    for (const auto& [name, value] : event.arguments) packets_.add_argument(name, value, style_);
    const auto add = [&](const char* name, std::string_view text) {
      packets_.add_argument(name, {TextValue{std::string(text)}}, style_);
    };
    if (event.text != event.name && event.is_seen() && !event.text.empty())
      add(event.kind == SpanKind::kExit ? "result" : "text", event.text);
    if (event.anomaly != SpanAnomaly::kNone) add("flaw", anomaly_text(event.anomaly));
  }

  // A process is named by its first or main thread.
  uint64_t process_track(const SpanEvent& event) {
    Track& track = processes_[event.pid];
    if (track.id != 0 && (event.pid != event.tid || track.name == event.comm)) return track.id;
    if (track.id == 0) track.id = ++last_track_;
    track.name = event.comm;
    packets_.describe_process(track.id, event.pid, event.comm);
    return track.id;
  }

  // The idle threads, which all have the id 0, have tracks of their own, by CPU.
  uint64_t thread_track(const SpanEvent& event) {
    const bool is_idle = event.tid == 0;
    Track& track = threads_[{event.pid, is_idle ? event.cpu : event.tid}];
    if (track.id != 0 && track.name == event.comm) return track.id;
    if (track.id == 0) track.id = ++last_track_;
    track.name = event.comm;
    if (is_idle)
      packets_.describe_track(track.id, event.comm);
    else
      packets_.describe_thread(track.id, process_track(event), event.pid, event.tid, event.comm);
    return track.id;
  }

  uint64_t counter_track(uint64_t parent, const std::string& name, bool is_count) {
    const auto [known, is_new] = counters_.try_emplace({parent, name}, last_track_ + 1);
    if (is_new) packets_.describe_counter(++last_track_, parent, name, is_count);
    return known->second;
  }

  Writer& out_;
  TextStyle style_;
  RunInfo run_;
  PerfettoPackets packets_;
  uint64_t last_track_ = 0;
  std::map<uint32_t, Track> processes_;                            // by pid
  std::map<std::pair<uint32_t, uint32_t>, Track> threads_;         // by pid and tid
  std::map<std::pair<uint64_t, std::string>, uint64_t> counters_;  // by the track of the process and the name
};

}  // namespace

std::unique_ptr<Sink> make_perfetto_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<PerfettoSink>(out, std::move(style), quiet);
}

}  // namespace espy::output
