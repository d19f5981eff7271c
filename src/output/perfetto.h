// The formats of trace viewers: Perfetto's own, and the Trace Event Format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

#include "output/format.h"
#include "output/sink.h"
#include "output/value.h"

namespace espy::output {

// ---- Packets of a trace in Perfetto's format (trace.proto): one sequence, with its clock and its interned texts.
//
// A time is the difference to the packet before it. If the difference would be negative, it is absolute. A text that is
// seen for the first time is in the packet that needs it, with a number that stands for it from then on. Packets are
// compressed together, in parts of about 64 KB.

enum class TrackEventType : uint8_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

// The numbers of the texts of one kind: InternedData's field.
class InternedTexts {
 public:
  explicit InternedTexts(uint32_t field) : field_(field) {}
  // Returns the number of a text; 0 if there are too many. Adds a new one to `interned`, the fields of InternedData.
  uint64_t number(const std::string& text, std::string& interned);

 private:
  uint32_t field_;
  std::map<std::string, uint64_t> numbers_;
};

class PerfettoPackets {
 public:
  // Begins the sequence. `wall_ns`: the time since the epoch.
  void begin(uint64_t boot_ns, uint64_t wall_ns);
  void describe_process(uint64_t track, uint32_t pid, std::string_view name);
  void describe_thread(uint64_t track, uint64_t process, uint32_t pid, uint32_t tid, std::string_view name);
  void describe_track(uint64_t track, std::string_view name);
  void describe_counter(uint64_t track, uint64_t parent, std::string_view name, bool is_count);

  // One event: begin_event(), its arguments, end_event().
  void begin_event(TrackEventType type, uint64_t track, const std::string& name);  // "": none
  void add_argument(const std::string& name, const Value& value, const TextStyle& style);
  void end_event(uint64_t time_ns);
  void add_counter(uint64_t time_ns, uint64_t track, int64_t value);

  // Returns what can be written: a Trace with all packets, or "" as long as they are few, unless `all`.
  std::string take(bool all);

 private:
  std::string annotation(uint32_t name_field, const std::string& name, const Value& value, const TextStyle& style);
  void write_value(protozero::pbf_writer& out, const Value& value, const TextStyle& style);
  void write_nested(protozero::pbf_writer& out, const Value& value, const TextStyle& style);
  void add_packet(std::string_view packet);
  void add_descriptor(std::string_view descriptor);

  std::string packets_;   // of the part that is not yet compressed
  std::string event_;     // the one that is being written
  std::string interned_;  // the texts that are new in it
  uint64_t last_ns_ = 0;
  InternedTexts event_names_{2}, argument_names_{3}, texts_{29};
};

// ---- The sink for Perfetto's own format, which `-f trace` writes to a file of this suffix.

inline constexpr std::string_view kPerfettoSuffix = ".pftrace";

std::unique_ptr<Sink> make_perfetto_sink(Writer& out, TextStyle style, Quiet quiet);

}  // namespace espy::output
