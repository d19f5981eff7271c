#include "output/perfetto_packets.h"

#include <cstdint>

#include "base/printable.h"
#include "output/deflate.h"
#include "types/units.h"

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

}  // namespace espy::output
