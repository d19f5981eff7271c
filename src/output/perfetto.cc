#include "output/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/strings.h"
#include "output/forwarding_sink.h"
#include "output/json.h"
#include "output/profile_formats.h"
#include "output/quantity.h"
#include "output/sink.h"
#include "types/type.h"

namespace espy::output {

namespace {

using protozero::pbf_writer;

constexpr size_t kPartBytes = 64 * 1024;
constexpr size_t kMostInterned = 65536;  // texts of a kind
constexpr size_t kLongestInternedBytes = 256;
constexpr uint32_t kSequence = 1;

// Clocks of ClockSnapshot; one from 64 on belongs to the sequence.
enum : uint32_t { kRealtime = 1, kBoottime = 6, kDelta = 64 };
// TracePacket.sequence_flags
enum : uint32_t { kIsCleared = 1, kNeedsState = 2 };

namespace trace {
enum : uint32_t { kPacket = 1 };
}
namespace packet_field {
enum : uint32_t {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kCompressed = 50,
  kClock = 58,
  kDefaults = 59,
  kDescriptor = 60
};
}
namespace event_field {
enum : uint32_t { kArgument = 4, kType = 9, kNameNumber = 10, kTrack = 11, kName = 23, kCounter = 30 };
}
namespace argument_field {
enum : uint32_t {
  kNameNumber = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kText = 6,
  kPointer = 7,
  kName = 10,
  kMember = 11,
  kItem = 12,
  kTextNumber = 17
};
}
namespace descriptor_field {
enum : uint32_t { kTrack = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8 };
}

}  // namespace

uint64_t InternedTexts::number(const std::string& text, std::string& interned) {
  const auto known = numbers_.find(text);
  if (known != numbers_.end()) return known->second;
  if (numbers_.size() >= kMostInterned || text.size() > kLongestInternedBytes) return 0;
  const uint64_t number = numbers_.emplace(text, numbers_.size() + 1).first->second;
  pbf_writer data(interned);
  pbf_writer entry(data, field_);
  entry.add_uint64(1, number);
  entry.add_string(2, printable(text));
  return number;
}

void PerfettoPackets::add_packet(std::string_view packet) {
  pbf_writer(packets_).add_message(trace::kPacket, packet.data(), packet.size());
}

void PerfettoPackets::begin(uint64_t boot_ns, uint64_t wall_ns) {
  std::string packet;
  pbf_writer out(packet);
  {
    pbf_writer snapshot(out, packet_field::kClockSnapshot);
    const auto add_clock = [&](uint32_t id, uint64_t time_ns) {
      pbf_writer clock(snapshot, 1);
      clock.add_uint32(1, id);
      clock.add_uint64(2, time_ns);
      if (id == kDelta) clock.add_bool(3, true);  // is_incremental
    };
    add_clock(kRealtime, wall_ns);
    add_clock(kBoottime, boot_ns);
    add_clock(kDelta, boot_ns);
  }
  out.add_uint32(packet_field::kSequence, kSequence);
  out.add_uint32(packet_field::kSequenceFlags, kIsCleared);
  pbf_writer(out, packet_field::kDefaults).add_uint32(packet_field::kClock, kDelta);
  last_ns_ = boot_ns;
  add_packet(packet);
}

void PerfettoPackets::add_descriptor(std::string_view descriptor) {
  std::string packet;
  pbf_writer out(packet);
  out.add_uint32(packet_field::kSequence, kSequence);
  out.add_message(packet_field::kDescriptor, descriptor.data(), descriptor.size());
  add_packet(packet);
}

void PerfettoPackets::describe_process(uint64_t track, uint32_t pid, std::string_view name) {
  std::string descriptor;
  pbf_writer out(descriptor);
  out.add_uint64(descriptor_field::kTrack, track);
  {
    pbf_writer process(out, descriptor_field::kProcess);
    process.add_int32(1, static_cast<int32_t>(pid));
    process.add_string(6, printable_line(name));
  }
  add_descriptor(descriptor);
}

void PerfettoPackets::describe_thread(uint64_t track, uint64_t process, uint32_t pid, uint32_t tid,
                                      std::string_view name) {
  std::string descriptor;
  pbf_writer out(descriptor);
  out.add_uint64(descriptor_field::kTrack, track);
  out.add_uint64(descriptor_field::kParent, process);
  {
    pbf_writer thread(out, descriptor_field::kThread);
    thread.add_int32(1, static_cast<int32_t>(pid));
    thread.add_int32(2, static_cast<int32_t>(tid));
    thread.add_string(5, printable_line(name));
  }
  add_descriptor(descriptor);
}

void PerfettoPackets::describe_track(uint64_t track, std::string_view name) {
  std::string descriptor;
  pbf_writer out(descriptor);
  out.add_uint64(descriptor_field::kTrack, track);
  out.add_string(descriptor_field::kName, printable_line(name));
  add_descriptor(descriptor);
}

void PerfettoPackets::describe_counter(uint64_t track, uint64_t parent, std::string_view name, bool is_count) {
  // CounterDescriptor.Unit
  enum : int32_t { kNanoseconds = 1, kCount = 2, kBytes = 3 };
  const types::Unit unit = types::unit_of(name.substr(0, name.find('[')));
  std::string descriptor;
  pbf_writer out(descriptor);
  out.add_uint64(descriptor_field::kTrack, track);
  out.add_string(descriptor_field::kName, printable_line(name));
  if (parent != 0) out.add_uint64(descriptor_field::kParent, parent);
  std::string counter;  // which must be there even if it is empty
  if (is_count) pbf_writer(counter).add_enum(3, kCount);
  if (!is_count && unit == types::Unit::kNanoseconds) pbf_writer(counter).add_enum(3, kNanoseconds);
  if (!is_count && unit == types::Unit::kBytes) pbf_writer(counter).add_enum(3, kBytes);
  out.add_message(descriptor_field::kCounter, counter);
  add_descriptor(descriptor);
}

void PerfettoPackets::begin_event(TrackEventType type, uint64_t track, const std::string& name) {
  pbf_writer out(event_);
  out.add_enum(event_field::kType, static_cast<int32_t>(type));
  out.add_uint64(event_field::kTrack, track);
  if (name.empty()) return;
  const uint64_t number = event_names_.number(name, interned_);
  if (number != 0)
    out.add_uint64(event_field::kNameNumber, number);
  else
    out.add_string(event_field::kName, printable(name));
}

void PerfettoPackets::write_nested(pbf_writer& out, const Value& value, const TextStyle& style) {
  const auto add = [&](uint32_t field, const std::string& name, const Value& item) {
    pbf_writer entry(out, field);
    if (!name.empty()) entry.add_string(argument_field::kName, printable_line(name));
    write_value(entry, item, style);
  };
  if (const auto* record = std::get_if<RecordValue>(&value.node))
    for (size_t i = 0; i < record->items.size(); ++i)
      add(argument_field::kMember, record->names->members[i], record->items[i]);
  if (const auto* list = std::get_if<ListValue>(&value.node))
    for (const Value& item : list->items) add(argument_field::kItem, "", item);
  if (const auto* tuple = std::get_if<TupleValue>(&value.node))
    for (const Value& item : tuple->items) add(argument_field::kItem, "", item);
}

void PerfettoPackets::write_value(pbf_writer& out, const Value& value, const TextStyle& style) {
  if (const auto* number = std::get_if<int64_t>(&value.node)) return out.add_int64(argument_field::kInt, *number);
  if (const auto* number = std::get_if<uint64_t>(&value.node)) return out.add_uint64(argument_field::kUint, *number);
  if (const auto* truth = std::get_if<bool>(&value.node)) return out.add_bool(argument_field::kBool, *truth);
  if (const auto* pointer = std::get_if<PointerValue>(&value.node))
    return out.add_uint64(argument_field::kPointer, pointer->address);
  if (std::holds_alternative<RecordValue>(value.node) || std::holds_alternative<ListValue>(value.node) ||
      std::holds_alternative<TupleValue>(value.node))
    return write_nested(out, value, style);
  const std::string text = to_text(value, style);
  const uint64_t number = texts_.number(text, interned_);
  if (number != 0)
    out.add_uint64(argument_field::kTextNumber, number);
  else
    out.add_string(argument_field::kText, printable(text));
}

void PerfettoPackets::add_argument(const std::string& name, const Value& value, const TextStyle& style) {
  pbf_writer out(event_);
  pbf_writer argument(out, event_field::kArgument);
  const uint64_t number = argument_names_.number(name, interned_);
  if (number != 0)
    argument.add_uint64(argument_field::kNameNumber, number);
  else
    argument.add_string(argument_field::kName, printable(name));
  write_value(argument, value, style);
}

void PerfettoPackets::end_event(uint64_t time_ns) {
  std::string packet;
  pbf_writer out(packet);
  if (time_ns >= last_ns_) {
    out.add_uint64(packet_field::kTimestamp, time_ns - last_ns_);
    last_ns_ = time_ns;
  } else {
    out.add_uint64(packet_field::kTimestamp, time_ns);
    out.add_uint32(packet_field::kClock, kBoottime);
  }
  out.add_uint32(packet_field::kSequence, kSequence);
  out.add_uint32(packet_field::kSequenceFlags, kNeedsState);
  if (!interned_.empty()) out.add_message(packet_field::kInternedData, interned_);
  out.add_message(packet_field::kTrackEvent, event_);
  add_packet(packet);
  event_.clear();
  interned_.clear();
}

void PerfettoPackets::add_counter(uint64_t time_ns, uint64_t track, int64_t value) {
  begin_event(TrackEventType::kCounter, track, "");
  pbf_writer(event_).add_int64(event_field::kCounter, value);
  end_event(time_ns);
}

std::string PerfettoPackets::take(bool all) {
  if (packets_.empty() || (packets_.size() < kPartBytes && !all)) return "";
  std::string packet, out;
  pbf_writer(packet).add_bytes(packet_field::kCompressed, deflated(packets_, Wrapping::kZlib));
  pbf_writer(out).add_message(trace::kPacket, packet);
  packets_.clear();
  return out;
}

// ---- Perfetto's own format, for ui.perfetto.dev and trace_processor: spans and instants on the tracks of their
// threads, counters, and the numbers of maps, each time they are printed, as counters. Other output of a script goes to
// stderr.

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
  PerfettoSink(Writer& out, TextStyle style, Quiet quiet)
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

std::unique_ptr<Sink> make_perfetto_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<PerfettoSink>(out, std::move(style), quiet);
}

// ---- The Trace Event Format of chrome://tracing and Perfetto: one JSON array of events, a line each.
//
// Spans are B and E events, which nest by thread; instants are i, counters C. Unmatched B and E events would corrupt
// the rest of the thread: an end without a begin is written as an instant, and CallTrees ends each begin; both have the
// anomaly as the argument "flaw". Times are microseconds since boot, with three decimals. Other output of a script goes
// to stderr.
//
// The format allows an array without its closing bracket, as a killed run leaves it.

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
  TraceSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {}

  void span(const SpanEvent& event) override {
    name_threads(event);
    const char phase = phase_of(event);
    std::string out =
        fmt::format("{{\"ph\":\"{}\",\"ts\":{}.{:03},\"pid\":{},\"tid\":{},\"name\":{}", phase, event.time_ns / 1000,
                    event.time_ns % 1000, event.pid, thread_of(event), json_string(event.name));
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
    JsonList out = span_arguments(event, style_);
    const auto add = [&](std::string_view name, std::string_view text) { out.add_member(name, json_string(text)); };
    const bool says_more = event.text != event.name && event.is_seen();
    if (says_more && !event.text.empty()) add(event.kind == SpanKind::kExit ? "result" : "text", event.text);
    if (event.anomaly != SpanAnomaly::kNone) add("flaw", anomaly_text(event.anomaly));
    return out.object();
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
                    json_string(comm)));
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

std::unique_ptr<Sink> make_trace_sink(Writer& out, TextStyle style, Quiet quiet) {
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
