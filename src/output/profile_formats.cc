#include "output/profile_formats.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "base/fatal.h"
#include "base/strings.h"
#include "output/forwarding_sink.h"
#include "output/json.h"
#include "output/quantity.h"
#include "output/sink.h"
#include "types/type.h"

namespace espy::output {

namespace {

using protozero::pbf_writer;

// Fields of profile.proto.
namespace profile {
enum : uint32_t { kMapping = 3, kLocation = 4, kFunction = 5, kStringTable = 6 };
}
namespace mapping_field {
enum : uint32_t {
  kId = 1,
  kStart = 2,
  kLimit = 3,
  kOffset = 4,
  kFile = 5,
  kBuildId = 6,
  kHasFunctions = 7,
  kHasFileNames = 8,
  kHasLineNumbers = 9,
  kHasInlineFrames = 10
};
}
namespace location_field {
enum : uint32_t { kId = 1, kMapping = 2, kAddress = 3, kLine = 4 };
}
namespace line_field {
enum : uint32_t { kFunction = 1, kLine = 2 };
}
namespace function_field {
enum : uint32_t { kId = 1, kName = 2, kSystemName = 3, kFile = 4 };
}

// The name that perf gives to the kernel.
std::string kernel_file(const std::string& module) { return module.empty() ? "[kernel.kallsyms]" : "[" + module + "]"; }

}  // namespace

int64_t ProfileTables::text(std::string_view text) {
  const auto [known, is_new] = texts_.try_emplace(printable_line(text), static_cast<int64_t>(text_order_.size()));
  if (is_new) text_order_.push_back(&known->first);
  return known->second;
}

// Returns the id of the mapping of a frame; 0 if there is none, as for code that was made at run time.
uint64_t ProfileTables::mapping(const Frame& frame, bool is_user, uint64_t address) {
  if (is_user && (frame.module.empty() || !frame.module_address)) return 0;
  const CodeFile segment = frame.code ? *frame.code : CodeFile{};
  std::string file = is_user ? frame.module : kernel_file(frame.module);
  const auto [known, is_new] =
      mapping_ids_.try_emplace({file, segment.build_id, segment.address}, mappings_.size() + 1);
  if (is_new)
    mappings_.push_back({is_user ? segment.address : UINT64_MAX, segment.address + segment.size_bytes,
                         segment.file_offset, text(file), text(segment.build_id)});
  Mapping& mapping = mappings_[known->second - 1];
  if (!is_user) mapping.start = std::min(mapping.start, address);
  if (!frame.code) mapping.limit = std::max(mapping.limit, address + 1);
  mapping.has_functions &= is_named(frame);
  mapping.has_lines &= !frame.file.empty();
  return known->second;
}

uint64_t ProfileTables::function(const Frame& frame) {
  return functions_.try_emplace({text(exact_utf8(frame.symbol)), text(frame.file)}, functions_.size() + 1)
      .first->second;
}

// `frames`: the functions that are inlined at one address, innermost first, and the one that they are in.
uint64_t ProfileTables::location(Frames frames, bool is_user, bool is_caller) {
  const Frame& outer = *frames.back();
  // A caller's address is behind its call: the byte before it belongs to the call.
  const uint64_t address = outer.module_address.value_or(outer.address);
  const uint64_t code = address - (is_caller && address > 0 ? 1 : 0);
  std::string bytes;
  pbf_writer out(bytes);
  if (const uint64_t id = mapping(outer, is_user, code)) out.add_uint64(location_field::kMapping, id);
  out.add_uint64(location_field::kAddress, code);
  for (const auto& frame : frames) {
    if (!is_named(*frame)) continue;
    pbf_writer line(out, location_field::kLine);
    line.add_uint64(line_field::kFunction, function(*frame));
    if (frame->line != 0) line.add_int64(line_field::kLine, frame->line);
  }
  return locations_.try_emplace(std::move(bytes), locations_.size() + 1).first->second;
}

std::vector<uint64_t> ProfileTables::locations(const StackValue& stack) {
  std::vector<uint64_t> out;
  const Frames all = stack.frames;
  for (size_t first = 0, last = 0; first < all.size(); first = ++last) {
    while (all[last]->is_inlined && last + 1 < all.size()) ++last;
    out.push_back(location(all.subspan(first, last - first + 1), stack.is_user, first > 0));
  }
  return out;
}

void ProfileTables::write(pbf_writer& out) const {
  for (size_t i = 0; i < mappings_.size(); ++i) {
    const Mapping& mapping = mappings_[i];
    pbf_writer each(out, profile::kMapping);
    each.add_uint64(mapping_field::kId, i + 1);
    each.add_uint64(mapping_field::kStart, mapping.start);
    each.add_uint64(mapping_field::kLimit, mapping.limit);
    each.add_uint64(mapping_field::kOffset, mapping.file_offset);
    each.add_int64(mapping_field::kFile, mapping.file);
    each.add_int64(mapping_field::kBuildId, mapping.build_id);
    each.add_bool(mapping_field::kHasFunctions, mapping.has_functions);
    for (const auto field :
         {mapping_field::kHasFileNames, mapping_field::kHasLineNumbers, mapping_field::kHasInlineFrames})
      each.add_bool(field, mapping.has_lines);
  }
  for (const auto& [bytes, id] : locations_) {
    std::string whole;
    pbf_writer(whole).add_uint64(location_field::kId, id);
    out.add_message(profile::kLocation, whole + bytes);
  }
  for (const auto& [names, id] : functions_) {
    pbf_writer each(out, profile::kFunction);
    each.add_uint64(function_field::kId, id);
    each.add_int64(function_field::kName, names.first);
    each.add_int64(function_field::kSystemName, names.first);
    each.add_int64(function_field::kFile, names.second);
  }
  for (const std::string* text : text_order_) out.add_string(profile::kStringTable, *text);
}

std::string deflated(std::string_view bytes, Wrapping wrapping) {
  constexpr int kWindowBits = 15, kGzipHeader = 16, kMemoryLevel = 8;
  z_stream stream = {};
  const int window = kWindowBits + (wrapping == Wrapping::kGzip ? kGzipHeader : 0);
  // Fails only if there is no memory.
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out;
  char buffer[16 * 1024];
  int state = Z_OK;
  do {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(bytes.size(), UINT_MAX);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = static_cast<uInt>(part);
      bytes.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer);
    stream.avail_out = sizeof(buffer);
    state = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer, sizeof(buffer) - stream.avail_out);
  } while (state == Z_OK || state == Z_BUF_ERROR);
  ::deflateEnd(&stream);
  CHECK(state == Z_STREAM_END);
  return out;
}

namespace {

// The items of a key that is a tuple, otherwise the key.
std::vector<const Value*> parts_of(const Value& key) {
  std::vector<const Value*> parts;
  if (const auto* tuple = std::get_if<TupleValue>(&key.node)) {
    for (const Value& item : tuple->items) parts.push_back(&item);
  } else {
    parts.push_back(&key);
  }
  return parts;
}

FoldedFrame collapsed_frame(const Frame& frame, bool is_user) {
  const FrameKind kind = frame.is_inlined ? FrameKind::kInlined : is_user ? FrameKind::kUser : FrameKind::kKernel;
  if (!frame.symbol.empty()) return {printable_line(exact_utf8(frame.symbol)), kind};
  // One frame for all code of a stripped file is more useful than a frame for each address.
  const std::string_view file = base_name(frame.module);
  if (file.starts_with('[')) return {std::string(file), FrameKind::kUnknown};
  return {file.empty() ? "[unknown]" : fmt::format("[{}]", file), FrameKind::kUnknown};
}

uint64_t positive(int64_t value) { return value > 0 ? static_cast<uint64_t>(value) : 0; }

uint64_t sum_of(const std::vector<uint64_t>& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0});
}

struct Weight {
  uint64_t operator()(bool value) const { return value ? 1 : 0; }
  uint64_t operator()(int64_t value) const { return positive(value); }
  uint64_t operator()(uint64_t value) const { return value; }
  uint64_t operator()(const HistValue& value) const { return sum_of(value.buckets); }
  uint64_t operator()(const LhistValue& value) const { return sum_of(value.buckets); }
  uint64_t operator()(const StatsValue& value) const {
    const int64_t number = value.only_average ? average(value) : value.total;
    return value.is_signed ? positive(number) : static_cast<uint64_t>(number);
  }
  template <class Other>
  uint64_t operator()(const Other&) const {
    return 1;
  }
};

void append_stacks(std::vector<FoldedFrame>& out, const std::vector<const Value*>& parts, bool is_user) {
  for (const Value* part : parts) {
    const auto* stack = std::get_if<StackValue>(&part->node);
    if (stack == nullptr || stack->is_user != is_user) continue;
    for (auto frame = stack->frames.rbegin(); frame != stack->frames.rend(); ++frame)
      out.push_back(collapsed_frame(**frame, is_user));
  }
}

// "comm", "args.dev", but not "(uint64)x" or a text.
bool is_word(std::string_view name) {
  const auto is_part = [](char c) { return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && std::ranges::all_of(name, is_part);
}

}  // namespace

bool has_stacks(const MapView& map) {
  const auto is_stack = [](const Value* part) { return std::holds_alternative<StackValue>(part->node); };
  return !map.is_scalar && !map.entries.empty() && std::ranges::any_of(parts_of(map.entries.front().key), is_stack);
}

KeyStack split_key(const Value& key, std::span<const std::string> names) {
  const std::vector<const Value*> parts = parts_of(key);
  KeyStack out;
  std::vector<const StackValue*> user;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string other = i == 0 ? "key" : fmt::format("key{}", i + 1);
    if (const auto* stack = std::get_if<StackValue>(&parts[i]->node))
      (stack->is_user ? user : out.stacks).push_back(stack);
    else
      out.labels.emplace_back(i < names.size() && is_word(names[i]) ? names[i] : other, parts[i]);
  }
  out.stacks.insert(out.stacks.end(), user.begin(), user.end());
  return out;
}

uint64_t weight_of(const Value& value) { return std::visit(Weight(), value.node); }

std::vector<FoldedStack> collapse_stacks(const MapView& map, const TextStyle& style) {
  std::vector<FoldedStack> out;
  TextStyle exact = style;
  exact.is_for_terminal = true;
  for (const MapEntry& entry : shown_entries(map)) {
    const std::vector<const Value*> parts = parts_of(entry.key);
    FoldedStack stack;
    stack.weight = weight_of(divided(entry.value, map.divisor));
    for (const Value* part : parts)
      if (!std::holds_alternative<StackValue>(part->node))
        stack.frames.push_back({printable_line(to_text(*part, exact))});
    append_stacks(stack.frames, parts, true);
    append_stacks(stack.frames, parts, false);
    if (stack.weight > 0) out.push_back(std::move(stack));
  }
  return out;
}

void CallTree::add(const std::vector<FoldedFrame>& frames, uint64_t weight) {
  CallTree* node = this;
  add_weight(node->total, weight);
  for (const FoldedFrame& frame : frames) {
    node = &node->callees[frame];
    add_weight(node->total, weight);
  }
}

std::string with_commas(uint64_t number) {
  std::string out = std::to_string(number);
  for (size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

std::string folded_name(const FoldedFrame& frame) {
  std::string out;
  const std::string_view separator = frame.kind == FrameKind::kText ? "\\x3b" : ":";
  for (const char c : frame.name) c == ';' ? void(out += separator) : out.push_back(c);
  if (frame.kind == FrameKind::kKernel) out += "_[k]";
  if (frame.kind == FrameKind::kInlined) out += "_[i]";
  return out;
}

// ---- Folded stacks, the input of flamegraph.pl, inferno and speedscope: a line for each stack, the frames from the
// outermost on joined by semicolons, a blank, the weight.

namespace {

class FoldedSink final : public TextFallbackSink {
 public:
  FoldedSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(for_terminal(std::move(style), out)) {}

  void map(const MapView& map) override {
    if (!has_stacks(map)) return TextFallbackSink::map(map);
    for (const FoldedStack& stack : collapse_stacks(map, style_)) {
      std::string line;
      for (const FoldedFrame& frame : stack.frames) line += (line.empty() ? "" : ";") + folded_name(frame);
      out_.write(fmt::format("{} {}\n", line, stack.weight));
    }
  }

 private:
  Writer& out_;
  TextStyle style_;
};

std::unique_ptr<Sink> make_folded_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<FoldedSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kFoldedSink = {.name = "folded",
                                        .doc = "maps keyed by stacks, a line for each stack",
                                        .has_lines = true,
                                        .shows_stacks = true,
                                        .create = make_folded_sink};

// ---- Profiles for speedscope (www.speedscope.app): one JSON object with a "sampled" profile for each map that has
// stacks in its keys, as last printed, and a table of frames that they share.
//
// speedscope opens profiles for pprof and folded stacks as well. But a profile for pprof merges entries of several maps
// that have equal keys, and folded stacks have neither units nor files.

namespace {

// A map as last printed.
struct Profile {
  std::string_view unit;
  JsonList samples{","}, weights{","};
  uint64_t total = 0;
};

class SpeedscopeSink final : public TextFallbackSink {
 public:
  SpeedscopeSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {
    style_.is_for_terminal = true;  // texts of programs are shown, and have to differ where the programs' do
  }

  void map(const MapView& map) override {
    if (!has_stacks(map)) return TextFallbackSink::map(map);
    const bool is_time = map.sampled.unit == "nanoseconds";
    const bool is_counted = map.kind == types::Kind::kCount || map.kind == types::Kind::kHist;
    Profile profile;
    profile.unit = types::long_name(is_time      ? types::Unit::kNanoseconds
                                    : is_counted ? types::Unit::kNone
                                                 : types::unit_of(map.name));
    if (profile.unit.empty()) profile.unit = "none";
    for (const MapEntry& entry : shown_entries(map)) {
      uint64_t weight = 0;
      if (__builtin_mul_overflow(weight_of(divided(entry.value, map.divisor)), is_time ? map.sampled.amount : 1,
                                 &weight))
        weight = INT64_MAX;
      weight = std::min<uint64_t>(weight, INT64_MAX);
      if (weight == 0) continue;
      profile.samples.add(stack(entry.key, map.key_names).array());
      profile.weights.add(std::to_string(weight));
      add_weight(profile.total, weight);
    }
    profiles_[std::string(map.name)] = std::move(profile);
  }

  void finish() override {
    if (profiles_.empty()) message("warnf", "no map has stacks in its keys, so there is no profile", "", 0, 0, 0);
    out_.write("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"espy " ESPY_VERSION
               "\",\n\"shared\":{\"frames\":[");
    out_.write(frames_.text() + "]},\n\"profiles\":[");
    std::string_view comma = "\n";
    for (const auto& [name, profile] : profiles_) {
      out_.write(fmt::format(
          "{}{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},\n\"samples\":{},\n"
          "\"weights\":{}}}",
          comma, json_string(name), profile.unit, profile.total, profile.samples.array(), profile.weights.array()));
      comma = ",\n";
    }
    out_.write("]}\n");
  }

 private:
  // The numbers of the frames, outermost first: the other parts of the key, then the frames of the stacks.
  JsonList stack(const Value& key, std::span<const std::string> names) {
    const KeyStack parts = split_key(key, names);
    JsonList out(",");
    const auto add = [&](const std::string& name, const std::string& file) {
      out.add(std::to_string(frame(name, file)));
    };
    for (const auto& [name, value] : parts.labels) add(to_text(*value, style_), "");
    for (auto each = parts.stacks.rbegin(); each != parts.stacks.rend(); ++each)
      for (auto at = (*each)->frames.rbegin(); at != (*each)->frames.rend(); ++at)
        add_frame(**at, (*each)->is_user, add);
    return out;
  }

  template <class Add>
  static void add_frame(const Frame& frame, bool is_user, const Add& add) {
    const std::string file = is_user ? frame.module : frame.module.empty() ? "[kernel]" : "[" + frame.module + "]";
    const std::string name(file.empty() ? "[unknown]" : file.starts_with('[') ? file : base_name(file));
    add(frame.symbol.empty() ? name : exact_utf8(frame.symbol), frame.file.empty() ? file : frame.file);
  }

  size_t frame(const std::string& name, const std::string& file) {
    const auto [known, is_new] = numbers_.try_emplace({name, file}, numbers_.size());
    if (!is_new) return known->second;
    const std::string place = file.empty() ? "" : fmt::format(",\"file\":{}", json_string(printable_line(file)));
    frames_.add(fmt::format("{{\"name\":{}{}}}", json_string(printable_line(name)), place));
    return known->second;
  }

  Writer& out_;
  TextStyle style_;
  JsonList frames_{",\n"};
  std::map<std::pair<std::string, std::string>, size_t> numbers_;  // by name and file
  std::map<std::string, Profile> profiles_;                        // by the map's name
};

std::unique_ptr<Sink> make_speedscope_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<SpeedscopeSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kSpeedscopeSink = {.name = "speedscope",
                                            .doc = "maps keyed by stacks, for www.speedscope.app",
                                            .shows_stacks = true,
                                            .create = make_speedscope_sink};

// ---- Profiles for `go tool pprof` and others that read its format: profile.proto, compressed by gzip.
//
// All maps with stacks in their keys are one profile, each map a type of sample (two where the values have a
// count and a total, and where the probe samples: the count, and what it stands for). Samples with the same stacks and
// labels are one, whichever map they are from. Each map is as last printed.

namespace {

using protozero::pbf_writer;
using types::Kind;

// Fields of profile.proto.
namespace profile {
enum : uint32_t {
  kSampleType = 1,
  kSample = 2,
  kTime = 9,
  kDuration = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultType = 14
};
}
namespace type_field {
enum : uint32_t { kType = 1, kUnit = 2 };
}
namespace sample_field {
enum : uint32_t { kLocations = 1, kValues = 2, kLabel = 3 };
}
namespace label_field {
enum : uint32_t { kKey = 1, kText = 2, kNumber = 3, kUnit = 4 };
}

int64_t limited(uint64_t value) { return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)); }

struct SampleType {
  std::string type, unit;
};

// A map as last printed.
struct Column {
  std::vector<SampleType> types;
  std::vector<std::pair<std::string, std::vector<int64_t>>> samples;  // the encoded stack and labels, the values
  program::SamplePeriod sampled;
};

std::vector<SampleType> types_of(const MapView& map) {
  const bool is_counted = map.kind == Kind::kCount || map.kind == Kind::kHist || map.kind == Kind::kLhist;
  const std::string name = types::plain_name(map.name, is_counted ? "samples" : "value");
  const std::string_view unit = types::long_name(is_counted ? types::Unit::kNone : types::unit_of(map.name));
  const SampleType values = {name, std::string(unit.empty() ? "count" : unit)};
  if (map.kind == Kind::kAvg || map.kind == Kind::kStats) return {{name + "_count", "count"}, values};
  if (map.sampled.amount != 0) return {values, {std::string(map.sampled.type), std::string(map.sampled.unit)}};
  return {values};
}

std::vector<int64_t> values_of(const MapView& map, const Value& value) {
  if (const auto* stats = std::get_if<StatsValue>(&value.node)) {
    StatsValue total = *stats;
    total.only_average = false;
    return {limited(stats->count), limited(weight_of({total}))};
  }
  const int64_t weight = limited(weight_of(value));
  int64_t amount = 0;
  if (map.sampled.amount == 0) return {weight};
  if (__builtin_mul_overflow(weight, limited(map.sampled.amount), &amount)) amount = INT64_MAX;
  return {weight, amount};
}

class PprofSink final : public TextFallbackSink {
 public:
  PprofSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {
    style_.is_for_terminal = true;  // texts of programs are shown, and have to differ where the programs' do
  }

  void begin(const RunInfo& run) override { run_ = run; }
  void attached(uint64_t probe_count) override {
    if (run_.now_ns) begin_ns_ = run_.now_ns();
    TextFallbackSink::attached(probe_count);
  }

  void map(const MapView& map) override {
    if (!has_stacks(map)) return TextFallbackSink::map(map);
    Column& column = columns_[std::string(map.name)];
    column = {types_of(map), {}, map.sampled};
    // The greatest first, so that the first mapping is of a program that matters.
    const auto entries = shown_entries(map);
    for (size_t i = entries.size(); i-- > 0;) {
      const MapEntry entry = entries.at(i);
      std::vector<int64_t> values = values_of(map, divided(entry.value, map.divisor));
      if (std::ranges::any_of(values, [](int64_t value) { return value != 0; }))
        column.samples.emplace_back(encoded_key(entry.key, map.key_names), std::move(values));
    }
  }

  void finish() override {
    if (columns_.empty()) message("warnf", "no map has stacks in its keys, so the profile is empty", "", 0, 0, 0);
    make_types_differ();
    std::string bytes;
    pbf_writer profile(bytes);
    write_types(profile);
    write_samples(profile);
    write_header(profile);
    tables_.write(profile);
    out_.write(deflated(bytes, Wrapping::kGzip));
  }

 private:
  std::string encoded_key(const Value& key, std::span<const std::string> names) {
    const KeyStack parts = split_key(key, names);
    std::vector<uint64_t> ids;
    for (const StackValue* stack : parts.stacks) {
      const auto more = tables_.locations(*stack);
      ids.insert(ids.end(), more.begin(), more.end());
    }
    std::string bytes;
    pbf_writer sample(bytes);
    sample.add_packed_uint64(sample_field::kLocations, ids.begin(), ids.end());
    for (const auto& [name, value] : parts.labels) write_label(sample, name, *value);
    return bytes;
  }

  void write_label(pbf_writer& sample, const std::string& name, const Value& value) {
    pbf_writer label(sample, sample_field::kLabel);
    label.add_int64(label_field::kKey, tables_.text(name));
    const auto* plain = std::get_if<int64_t>(&value.node);
    const auto* natural = std::get_if<uint64_t>(&value.node);
    if (plain == nullptr && (natural == nullptr || *natural > INT64_MAX)) {
      label.add_int64(label_field::kText, tables_.text(to_text(value, style_)));
      return;
    }
    label.add_int64(label_field::kNumber, plain ? *plain : static_cast<int64_t>(*natural));
    const std::string_view unit = types::long_name(types::unit_of(name));
    label.add_int64(label_field::kUnit, tables_.text(unit.empty() ? "count" : unit));
  }

  void write_type(pbf_writer& profile, uint32_t field, std::string_view type, std::string_view unit) {
    pbf_writer out(profile, field);
    out.add_int64(type_field::kType, tables_.text(type));
    out.add_int64(type_field::kUnit, tables_.text(unit));
  }

  // Types are chosen by their names, so that a second "cpu" has the name of its map before it.
  void make_types_differ() {
    std::set<std::string> names;
    for (auto& [map, column] : columns_)
      for (SampleType& each : column.types)
        if (!names.insert(each.type).second) each.type = types::plain_name(map, "samples") + "_" + each.type;
  }

  void write_types(pbf_writer& profile) {
    for (const auto& [name, column] : columns_)
      for (const SampleType& each : column.types) write_type(profile, profile::kSampleType, each.type, each.unit);
    if (columns_.empty()) write_type(profile, profile::kSampleType, "samples", "count");
  }

  // A sample has a value of each type: zeros for maps that do not have its key.
  void write_samples(pbf_writer& profile) const {
    size_t width = 0;
    for (const auto& [name, column] : columns_) width += column.types.size();
    std::map<std::string_view, std::vector<int64_t>> samples;
    size_t first = 0;
    for (const auto& [name, column] : columns_) {
      for (const auto& [key, values] : column.samples) {
        std::vector<int64_t>& all = samples[key];
        all.resize(width);
        for (size_t i = 0; i < values.size(); ++i)
          if (__builtin_add_overflow(all[first + i], values[i], &all[first + i])) all[first + i] = INT64_MAX;
      }
      first += column.types.size();
    }
    for (const auto& [key, values] : samples) {
      std::string bytes(key);
      pbf_writer(bytes).add_packed_int64(sample_field::kValues, values.begin(), values.end());
      profile.add_message(profile::kSample, bytes);
    }
  }

  void write_header(pbf_writer& profile) {
    if (run_.now_ns) {
      profile.add_int64(profile::kTime, static_cast<int64_t>(run_.wall_ns(begin_ns_)));
      profile.add_int64(profile::kDuration, static_cast<int64_t>(run_.now_ns() - begin_ns_));
    }
    profile.add_int64(profile::kComment, tables_.text("espy " ESPY_VERSION));
    const auto sampled =
        std::ranges::find_if(columns_, [](const auto& column) { return column.second.sampled.amount != 0; });
    if (sampled != columns_.end()) {
      const program::SamplePeriod& period = sampled->second.sampled;
      write_type(profile, profile::kPeriodType, period.type, period.unit);
      profile.add_int64(profile::kPeriod, limited(period.amount));
    }
    if (columns_.empty()) return;
    const Column& shown = sampled != columns_.end() ? sampled->second : columns_.begin()->second;
    profile.add_int64(profile::kDefaultType, tables_.text(shown.types.back().type));
  }

  Writer& out_;
  TextStyle style_;
  RunInfo run_;
  uint64_t begin_ns_ = 0;
  ProfileTables tables_;
  std::map<std::string, Column> columns_;  // by the map's name
};

std::unique_ptr<Sink> make_pprof_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<PprofSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kPprofSink = {.name = "pprof",
                                       .doc = "maps keyed by stacks, as a profile for go tool pprof",
                                       .is_binary = true,
                                       .needs_files = true,
                                       .shows_stacks = true,
                                       .create = make_pprof_sink};

}  // namespace espy::output
