// Records, maps and spans as no program of ours would write them, in every output format. The bytes are choices: of
// types, of fields that point anywhere, of the bytes of records, too few of them at times. Nothing may be read outside
// a record (each buffer is as long as it says, for the sanitizer to see), the two ways of printf must say the same,
// what is to be JSON must be JSON, and spans must be nested.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../json_reader.h"
#include "../reader.h"
#include "base/files.h"
#include "output/profile_formats.h"
#include "output/sink.h"
#include "output/spans.h"
#include "program/layout.h"

namespace espy::fuzz {

namespace {

using types::Kind;
using types::TypeId;

// The bytes of the input, one after the other; zeros when they are used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  bool are_left() const { return !bytes_.empty(); }
  uint8_t byte() {
    const uint8_t first = bytes_.empty() ? 0 : static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(std::min<size_t>(bytes_.size(), 1));
    return first;
  }
  uint64_t number(int size_bytes) {
    uint64_t out = 0;
    while (size_bytes-- > 0) out = out << 8 | byte();
    return out;
  }
  // Returns less than n, or 0 if n is 0.
  uint32_t below(size_t n) { return n <= 1 ? 0 : static_cast<uint32_t>(number(n <= 256 ? 1 : 4) % n); }
  bool flag() { return below(2) != 0; }

 private:
  std::string_view bytes_;
};

// ---- Types and bytes ------------------------------------------------------------------------------------------------

int64_t any_number(Choices& choices) {
  constexpr int64_t kEdges[] = {0, 1, -1, 2, 7, 8, 1024, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, -14};
  if (choices.flag()) return static_cast<int64_t>(choices.number(8) >> choices.below(64));
  return kEdges[choices.below(std::size(kEdges))];
}

std::string any_text(Choices& choices) {
  std::string out(choices.below(12), ' ');
  for (char& c : out) c = static_cast<char>(choices.byte());
  return out;
}

class Types {
 public:
  explicit Types(Choices& choices) : choices_(choices) {}

  TypeId any(int depth = 0) {
    const uint32_t kind = choices_.below(depth > 2 ? 17 : 22);
    constexpr Kind kSimple[] = {Kind::kKernelSymbol, Kind::kUserSymbol, Kind::kInet,       Kind::kMac,
                                Kind::kUsername,     Kind::kTimestamp,  Kind::kCgroupPath, Kind::kProbeName,
                                Kind::kFunctionName, Kind::kProbeType};
    switch (kind) {
      case 0: return types.bool_type();
      case 1: return enumeration();
      case 2: return types.pointer(types.int64(), types::AddressSpace::kUser);
      case 3:
      case 4: return types.string(1 + choices_.below(40));
      case 5: return types.buffer(1 + choices_.below(40));
      case 6:
      case 7: return types.simple(kSimple[choices_.below(std::size(kSimple))]);
      case 8: return types.stack(choices_.below(2) == 0, static_cast<types::StackMode>(choices_.below(4)), 8);
      case 9: return types.float_type(8);
      case 17: return types.array(any(depth + 1), choices_.below(5));
      case 18: return types.tuple({any(depth + 1), any(depth + 1)});
      case 19: return types.record({{"a", any(depth + 1)}, {"b", any(depth + 1)}});
      case 20:
      case 21: return structure(depth);
      default: return types.int_type(1U << choices_.below(4), choices_.below(2) == 0);
    }
  }

  TypeId aggregation() {
    constexpr Kind kPlain[] = {Kind::kCount, Kind::kSum, Kind::kMin, Kind::kMax, Kind::kAvg, Kind::kStats};
    constexpr Kind kSeries[] = {Kind::kVoid, Kind::kAvg, Kind::kMax, Kind::kMin, Kind::kSum};
    switch (choices_.below(6)) {
      case 0: return types.hist(static_cast<uint8_t>(choices_.below(6)));
      case 1: {
        const int64_t min = any_number(choices_) / 4, step = 1 + std::abs(any_number(choices_) / 8192);
        return types.lhist(min, min + step * (1 + choices_.below(1000)), step);
      }
      case 2:
        return types.tseries({1 + static_cast<uint64_t>(any_number(choices_)) % 2000000000, 1 + choices_.below(20),
                              kSeries[choices_.below(std::size(kSeries))]},
                             true);
      default: return types.simple(kPlain[choices_.below(std::size(kPlain))], choices_.below(2) == 0);
    }
  }

  types::Types types;

 private:
  TypeId enumeration() {
    return types.define_enum("e" + std::to_string(++names_), {{"ONE", 1}, {"MINUS", -1}}, 1U << choices_.below(4),
                             choices_.below(2) == 0, {});
  }

  TypeId structure(int depth) {
    const TypeId id = types.declare_struct("s" + std::to_string(++names_), choices_.below(4) == 0, {});
    std::vector<types::Member> members;
    uint32_t size = 0;
    for (uint32_t i = choices_.below(5); i > 0; --i) {
      types::Member member{"m" + std::to_string(i), any(depth + 1), size * 8};
      const Kind kind = types[member.type].kind;
      const bool is_integer = kind == Kind::kInt || kind == Kind::kBool || kind == Kind::kEnum;
      if (is_integer && choices_.below(3) == 0) {
        member.bit_size = 1 + choices_.below(types[member.type].size_bytes * 8);
        member.offset_bits += choices_.below(8);
      }
      size += types[member.type].size_bytes;
      members.push_back(member);
    }
    types.define_struct(id, members, size, 1);
    return id;
  }

  Choices& choices_;
  int names_ = 0;
};

// Exactly `size` bytes on the heap.
struct Bytes {
  std::unique_ptr<std::byte[]> at;
  size_t size = 0;
  operator std::span<const std::byte>() const { return {at.get(), size}; }
};

Bytes any_bytes(Choices& choices, size_t size) {
  Bytes out{std::make_unique<std::byte[]>(size), size};
  const uint32_t kind = choices.below(4);
  for (size_t i = 0; i < size; ++i)
    out.at[i] = kind == 0 ? std::byte{0xff} : kind == 1 ? std::byte{0} : std::byte{choices.byte()};
  for (uint32_t i = 0; i < 4 && size >= 8; ++i) {
    const int64_t number = any_number(choices);
    std::memcpy(out.at.get() + choices.below(size / 8) * 8, &number, 8);
  }
  return out;
}

size_t any_size(Choices& choices, size_t right) { return choices.below(3) == 0 ? choices.below(right + 1) : right; }

std::string any_format(Choices& choices, size_t& conversions) {
  constexpr std::string_view kConversions[] = {"d", "i", "u", "o", "x", "X", "c", "p", "s", "r", "rx", "rh", "gr"};
  constexpr std::string_view kLengths[] = {"", "", "hh", "h", "l", "ll", "j", "z", "t"};
  std::string out;
  conversions = choices.below(6);
  for (size_t i = 0; i < conversions; ++i) {
    out += std::string_view("a%%, \n").substr(0, choices.below(6) & ~1U);
    out += '%';
    for (uint32_t n = choices.below(4); n > 1; --n) out += "-+ #0"[choices.below(5)];
    if (choices.below(3) == 0) out += choices.below(4) == 0 ? "*" : std::to_string(1 + choices.below(30));
    if (choices.below(3) == 0) out += choices.below(4) == 0 ? ".*" : "." + std::to_string(choices.below(30));
    out += kLengths[choices.below(std::size(kLengths))];
    out += kConversions[choices.below(std::size(kConversions))];
  }
  return out;
}

// ---- The sinks ------------------------------------------------------------------------------------------------------

output::Resolver some_resolver() {
  output::Resolver resolver;
  resolver.stack = [](TypeId, int64_t reference) {
    return std::vector<uint64_t>(static_cast<size_t>(reference) % 5, static_cast<uint64_t>(reference));
  };
  resolver.kernel_symbol = [](uint64_t address) {
    return output::Frame{address, address % 2 != 0 ? "f\"x\n" : "", address % 3, "m", {}};
  };
  resolver.user_symbol = [](uint32_t pid, uint64_t address) {
    return output::Frame{address, pid % 2 != 0 ? "g" : "", address % 3, "", "ab"};
  };
  resolver.user_frames = [](uint32_t pid, uint64_t address, types::StackMode, bool is_caller) {
    std::vector<output::Frame> out(1 + address % 2, {address, pid % 2 != 0 ? "g" : "", address % 3, "", "ab"});
    out.front().file = is_caller ? "f\n.c" : "";
    out.front().is_inlined = out.size() > 1;
    return out;
  };
  resolver.timestamp = [](std::string_view format, uint64_t ns, uint32_t) {
    return std::string(format) + std::to_string(ns);
  };
  return resolver;
}

// The sink of a format, which writes to memory. `name`: "json", or ".pftrace" for the binary form of "trace".
class MemorySink {
 public:
  explicit MemorySink(const char* name)
      : memory_(::memfd_create("output", MFD_CLOEXEC)), writer_(memory_.get(), output::Buffering::kFull) {
    const std::string_view suffix = name[0] == '.' ? name : "";
    const output::SinkRow& row = *output::find_sink(suffix.empty() ? name : "trace");
    sink_ = (suffix.empty() ? row.create : row.create_binary)(writer_, {}, output::Quiet::kYes);
    sink_->begin({.now_ns = [] { return uint64_t{1}; },
                  .wall_ns = [](uint64_t ns) { return ns; },
                  .random = [] { return uint64_t{1}; },
                  .host = [] { return std::string("host"); }});
  }

  output::Sink* operator->() { return sink_.get(); }
  std::string written() {
    sink_->end();
    sink_->finish();
    writer_.flush();
    std::string out(static_cast<size_t>(::lseek(memory_.get(), 0, SEEK_CUR)), ' ');
    if (::pread(memory_.get(), out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) std::abort();
    return out;
  }

 private:
  OwnedFd memory_;
  output::Writer writer_;
  std::unique_ptr<output::Sink> sink_;
};

void check_json(std::string_view text) {
  if (JsonReader(text).is_value_alone()) return;
  std::fprintf(stderr, "not JSON: %s\n", std::string(text).c_str());
  std::abort();
}

// The formats of one document know no newlines but those between their parts.
void check_document(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  check_json(text);
}

void check_lines(std::string_view lines) {
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    if (end == std::string_view::npos) std::abort();
    check_json(lines.substr(0, end));
    lines.remove_prefix(end + 1);
  }
}

// Those of profiles show maps that have stacks in their keys, and those of traces show spans; both write the rest to
// stderr, so they do not get it, and are made when they are needed.
class Sinks {
 public:
  MemorySink& json() { return json_; }
  void show(const output::Value& value) {
    show_all([&](MemorySink& sink) { sink->value(value); });
  }
  void show(std::string_view text) {
    show_all([&](MemorySink& sink) { sink->text("printf", text); });
  }
  void show(const output::SpanEvent& event) {
    show_all([&](MemorySink& sink) { sink->span(event); });
    for (const char* name : {"trace", ".pftrace"}) made(name)->span(event);
  }
  void show(const output::MapView& map) {
    show_all([&](MemorySink& sink) { sink->map(map); });
    const auto has_stack = [&](const output::MapEntry& entry) {
      return !output::split_key(entry.key, map.key_names).stacks.empty();
    };
    if (map.is_scalar || !std::ranges::any_of(map.entries, has_stack)) return;
    for (const char* name : {"folded", "flame", "pprof", "speedscope"}) made(name)->map(map);
  }

  void check() {
    text_.written();
    check_lines(json_.written());
    check_lines(otlp_.written());
    for (auto& [name, sink] : made_) {
      const std::string text = sink.written();
      if (name == "trace" || name == "speedscope") check_document(text);
    }
  }

 private:
  template <typename Show>
  void show_all(Show&& show) {
    for (MemorySink* sink : {&text_, &json_, &otlp_}) show(*sink);
  }
  MemorySink& made(const char* name) { return made_.try_emplace(name, name).first->second; }

  MemorySink text_{"text"}, json_{"json"}, otlp_{"otlp"};
  std::map<std::string, MemorySink> made_;
};

// ---- What they show -------------------------------------------------------------------------------------------------

void try_record(Choices& choices, Types& types, const output::DecodeContext& context, Sinks& sinks) {
  program::EventSchema schema;
  uint32_t offset = sizeof(program::RecordHeader);
  for (uint32_t i = choices.below(8); i > 0; --i) {
    program::EventField field{types.any(), offset};
    const Kind kind = types.types[field.type].kind;
    field.is_in_tail = (kind == Kind::kString || kind == Kind::kBuffer) && choices.below(2) == 0;
    offset += field.is_in_tail ? 8 : types.types[field.type].size_bytes;
    if (choices.below(10) == 0) field.offset_bytes = static_cast<uint32_t>(any_number(choices));
    schema.fields.push_back(field);
  }
  const Bytes record = any_bytes(choices, any_size(choices, offset + choices.below(32)));
  std::vector<output::Argument> values;
  for (const program::EventField& field : schema.fields) {
    values.push_back({output::decode_field(context, field, record), output::is_c_int(types.types[field.type])});
    sinks.show(values.back().value);
  }
  size_t conversions = 0;
  const std::string format = any_format(choices, conversions);
  const auto formatter = output::Formatter::create(format);
  if (!formatter) std::abort();
  std::string from_values, from_record;
  formatter->append(from_values, values, {});
  formatter->append_record(from_record, context, schema, 0, record, {});
  if (from_values != from_record) {
    std::fprintf(stderr, "format %s\nvalues: %s\nrecord: %s\n", format.c_str(), from_values.c_str(),
                 from_record.c_str());
    std::abort();
  }
  sinks.show(from_record);
}

// The entries that are kept as bytes must be shown as the Values are.
void compare_entries(output::MapView& view) {
  view.compact.sort();
  for (size_t i = 0; i < view.entries.size(); ++i) {
    const output::MapEntry entry = view.compact.at(i);
    const std::string text = output::to_text(entry.key, {}) + ": " + output::to_text(entry.value, {});
    const std::string expected =
        output::to_text(view.entries[i].key, {}) + ": " + output::to_text(view.entries[i].value, {});
    if (text == expected) continue;
    std::fprintf(stderr, "entry %zu is \"%s\" by bytes, \"%s\" by values\n", i, text.c_str(), expected.c_str());
    std::abort();
  }
}

void try_map(Choices& choices, Types& types, const output::DecodeContext& context, Sinks& sinks) {
  output::MapView view{.name = "@x", .is_scalar = choices.below(4) == 0};
  const TypeId key = types.any();
  const bool is_aggregation = choices.below(2) == 0;
  const TypeId value = is_aggregation ? types.aggregation() : types.any();
  view.kind = types.types[value].kind;
  view.is_signed = types.types[value].is_signed;
  const std::string key_names[] = {any_text(choices), any_text(choices)};
  view.key_names = key_names;
  if (choices.flag()) view.sampled = {"cpu", "nanoseconds", choices.number(8)};
  const uint32_t cpus = 1 + choices.below(4);
  const bool fits = !view.is_scalar && output::CompactEntries::fits(types.types, key, value);
  if (fits) view.compact = output::CompactEntries(context, key);
  for (uint32_t i = view.is_scalar ? 1 : choices.below(8); i > 0; --i) {
    const size_t value_size = types.types[value].size_bytes;
    const Bytes key_bytes = any_bytes(choices, any_size(choices, types.types[key].size_bytes));
    const Bytes value_bytes =
        any_bytes(choices, any_size(choices, is_aggregation ? (value_size + 7) / 8 * 8 * cpus : value_size));
    view.entries.push_back({output::decode(context, key, key_bytes),
                            is_aggregation ? output::decode_per_cpu(context, value, value_bytes, cpus)
                                           : output::decode(context, value, value_bytes)});
    output::is_unset(value_bytes, cpus, choices.below(64));
    if (fits) view.compact.add(key_bytes, view.entries.back().value);
  }
  output::sort_for_display(view.entries);
  sinks.show(view);
  if (fits) compare_entries(view);
  view.top = choices.below(5);
  view.divisor = static_cast<uint64_t>(any_number(choices));
  sinks.show(view);
  for (const output::MapEntry& entry : view.entries) sinks.show(entry.value);
}

// Spans without a filter are properly nested, whatever the order of begins and ends.
void try_spans(Choices& choices, Types& types, const output::DecodeContext& context, Sinks& sinks) {
  output::SpanFilter filter;
  const bool is_filtered = choices.flag();
  if (is_filtered) {
    filter = {choices.below(4), choices.below(8), static_cast<uint64_t>(any_number(choices)), {}};
    if (choices.flag()) filter.order = {"f", "g"};
  }
  std::map<uint32_t, uint32_t> depths;  // by thread
  const auto check_depth = [&](const output::SpanEvent& event) {
    uint32_t& depth = depths[event.tid];
    if (event.kind == output::SpanKind::kEnter && event.depth != depth++) std::abort();
    if (event.kind == output::SpanKind::kExit && event.anomaly != output::SpanAnomaly::kNoBegin &&
        event.depth != --depth)
      std::abort();
  };
  output::CallTrees trees(std::move(filter), 4096, [&](const output::SpanEvent& event) {
    if (!is_filtered) check_depth(event);
    sinks.show(event);
  });
  uint64_t now_ns = 1;
  for (uint32_t i = choices.below(24); i > 0; --i) {
    now_ns = choices.below(16) == 0 ? static_cast<uint64_t>(any_number(choices)) : now_ns + choices.byte();
    constexpr std::string_view kNames[] = {"f", "g", "h\xff\"", ""};
    const uint32_t function = choices.below(4), tid = 1 + choices.below(3);
    output::SpanEvent event{.kind = static_cast<output::SpanKind>(choices.below(4)),
                            .time_ns = now_ns,
                            .pid = tid,
                            .tid = tid,
                            .cpu = choices.below(2),
                            .comm = any_text(choices),
                            .name = std::string(kNames[function]),
                            .text = any_text(choices)};
    const bool is_counter = event.kind == output::SpanKind::kCounter;  // which has a number, and may have labels
    for (uint32_t n = choices.below(3) + (is_counter ? 1 : 0); n > 0; --n) {
      const TypeId type = is_counter && event.arguments.empty() ? types.types.int64() : types.any();
      const Bytes bytes = any_bytes(choices, types.types[type].size_bytes);
      event.arguments.emplace_back(any_text(choices), output::decode(context, type, bytes));
    }
    event.shown_arguments = choices.below(event.arguments.size() + 1);
    const output::SpanPlace place{.function = function,
                                  .is_entry = choices.flag(),
                                  .is_return = choices.flag(),
                                  .frame = uint64_t{choices.byte()} << choices.below(64),
                                  .return_address = choices.number(2)};
    switch (choices.below(16)) {
      case 0: trees.note_losses(); break;
      case 1: trees.end_thread(event); break;
      default: trees.add(std::move(event), place);
    }
  }
  trees.close(now_ns);
}

// To JSON only: the others write these to stderr.
void try_messages(Choices& choices, Sinks& sinks) {
  const std::string name = any_text(choices), text = any_text(choices), excerpt = any_text(choices);
  const uint32_t line = choices.byte(), column = choices.byte(), end_column = choices.byte();
  const output::HelperError error{name, any_number(choices), text, name, line, column, end_column, excerpt};
  output::LossReport losses;
  for (uint32_t i = choices.below(3); i > 0; --i) {
    output::ActionReport& action = losses.actions.emplace_back();
    action.probes.push_back({any_text(choices), choices.number(8)});
    for (uint64_t& loss : action.losses) loss = choices.byte();
    action.is_missed_known = choices.flag();
    losses.skipped_probes.push_back({any_text(choices), any_text(choices)});
  }
  if (choices.flag()) losses.trees = output::TreeCounts{choices.byte(), choices.byte(), choices.byte(), choices.byte()};
  sinks.json()->attached(line);
  sinks.json()->text_line("join", text);
  sinks.json()->message("errorf", text, name, line, column, end_column);
  sinks.json()->helper_error(error);
  sinks.json()->map_cleared(name);
  sinks.json()->lost(line);
  sinks.json()->test_end({name, line, column == 0, text});
  sinks.json()->benchmark(name, line, column);
  sinks.json()->loss_report(losses);
}

}  // namespace

void run_records(std::string_view bytes) {
  Choices choices(bytes);
  Types types(choices);
  const output::Resolver resolver = choices.flag() ? some_resolver() : output::Resolver{};
  const std::vector<std::string> literals = {"%H", "x"};
  const output::DecodeContext context{types.types, resolver, literals};
  Sinks sinks;
  constexpr int kMaxSteps = 16;
  for (int i = 0; i < kMaxSteps && choices.are_left(); ++i) {
    switch (choices.below(8)) {
      case 0: try_messages(choices, sinks); break;
      case 1:
      case 2: try_spans(choices, types, context, sinks); break;
      case 3:
      case 4: try_map(choices, types, context, sinks); break;
      default: try_record(choices, types, context, sinks);
    }
  }
  sinks.check();
}

}  // namespace espy::fuzz
