// Value: a decoded value for display. output/decode.h makes Values of bytes and their types, a Sink writes them in its
// format. Names are resolved: a stack has frames with symbols, an enum has its enumerator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace espy::output {

struct Value;

struct EnumValue {
  int64_t number = 0;
  std::string name;  // empty: no enumerator has this number
};
struct PointerValue {
  uint64_t address = 0;
};
struct StringValue {
  std::string text;
  bool is_truncated = false;  // shown with TextStyle::truncation_trailer
  bool is_memory = false;     // of no fixed size, unlike a name such as the name of a command
};
struct BufferValue {
  std::string bytes;
};
// The text of ksym, usym, inet, mac, username, strftime, cgroup path, probe name.
struct TextValue {
  std::string text;
  bool is_formatted = false;  // strftime: by a text of the script
};
// The part of a file that has the code of a frame: a segment.
struct CodeFile {
  std::string build_id;  // hexadecimal; empty if it has none
  uint64_t address = 0;  // of the segment, as linked
  uint64_t size_bytes = 0, file_offset = 0;
};
struct Frame {
  uint64_t address = 0;  // without its tag
  std::string symbol;    // empty: unknown
  uint64_t offset = 0;
  std::string module;
  std::string build_id;   // build_id mode: hexadecimal; `offset` is a file offset
  std::string file = {};  // the source file, if it is shown and known
  uint32_t line = 0;
  bool is_inlined = false;                      // into the next frame
  std::optional<uint64_t> module_address = {};  // user code: the address in the module's file, as linked
  std::shared_ptr<const CodeFile> code = {};    // where the format needs it (SinkRow::needs_files), and it is known
  uint8_t code_tag = 0;                         // program::CodeTag
};
struct StackValue {
  std::vector<std::shared_ptr<const Frame>> frames;  // innermost first; shared by the stacks of a map
  uint8_t mode = 0;                                  // types::StackMode
  bool is_user = false;
  std::shared_ptr<const std::string> problem;  // why there are no frames; null: none
};
struct ListValue {  // array
  std::vector<Value> items;
};
struct TupleValue {
  std::vector<Value> items;
};
struct RecordNames {
  std::vector<std::string> members;
  std::string type = {};  // "struct sk_buff"; empty for records and anonymous structs
};
struct RecordValue {  // record, struct, union
  std::shared_ptr<const RecordNames> names;
  std::vector<Value> items;
};
struct HistValue {
  uint8_t bits = 0;
  std::vector<uint64_t> buckets;  // program/layout.h
};
struct LhistValue {
  int64_t min = 0, max = 0, step = 0;
  std::vector<uint64_t> buckets;
  // Returns the first value above a bucket other than the last one. The last step may be shorter than the others.
  int64_t end_of(size_t bucket) const { return std::min(max, min + static_cast<int64_t>(bucket) * step); }
};
struct StatsValue {
  uint64_t count = 0;
  bool is_signed = true;
  int64_t total = 0;          // the bits of a uint64 if not is_signed
  bool only_average = false;  // avg()
};
struct TseriesPoint {
  uint64_t start_ns = 0;  // wall clock, since the epoch
  std::optional<int64_t> value;
};
struct TseriesValue {
  uint64_t interval_ns = 0;
  std::vector<TseriesPoint> points;  // oldest first
  bool is_signed = true;             // otherwise the values are the bits of a uint64
};
struct RecentValue {
  std::vector<Value> items;  // oldest first
};

struct Value {
  std::variant<std::monostate, bool, int64_t, uint64_t, EnumValue, PointerValue, StringValue, BufferValue, TextValue,
               StackValue, ListValue, TupleValue, RecordValue, HistValue, LhistValue, StatsValue, TseriesValue,
               RecentValue>
      node;
};
// A map has two for each key, up to millions.
static_assert(sizeof(Value) <= 56);

// ---- The order of a map's entries, by numbers: the number of the value, then one that differs for most keys.

constexpr uint64_t kSignBit = uint64_t{1} << 63;

struct Order {
  uint64_t by_value = 0;
  uint64_t by_key = 0;
  uint32_t index = 0;  // of the entry
};

// Sorts ascending. `is_before`: whether the first of two entries, given by their indices, comes first if their numbers
// are equal.
void sort_by_numbers(std::vector<Order>& items, const std::function<bool(uint32_t, uint32_t)>& is_before);

// The first characters of a text as a number, in the same order.
uint64_t text_order(std::string_view text);

}  // namespace espy::output
