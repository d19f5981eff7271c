// Profiles for `go tool pprof` and others that read its format: profile.proto, compressed by gzip.
//
// All maps with stacks in their keys are one profile, each map a type of sample (two where the values have a
// count and a total, and where the probe samples: the count, and what it stands for). Samples with the same stacks and
// labels are one, whichever map they are from. Each map is as last printed.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <set>
#include <utility>

#include "output/collapse_stacks.h"
#include "output/deflate.h"
#include "output/divide.h"
#include "output/profile_tables.h"
#include "output/sink.h"
#include "output/text_fallback_sink.h"
#include "types/units.h"

namespace espy::output {

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
  PprofSink(Writer& out, TextStyle style, bool quiet)
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

std::unique_ptr<Sink> make_pprof_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<PprofSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kPprofSink = {.name = "pprof",
                                       .doc = "maps keyed by stacks, as a profile for go tool pprof",
                                       .is_binary = true,
                                       .needs_files = true,
                                       .create = make_pprof_sink};

}  // namespace espy::output
