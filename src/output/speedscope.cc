// Profiles for speedscope (www.speedscope.app): one JSON object with a "sampled" profile for each map that has stacks
// in its keys, as last printed, and a table of frames that they share.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "base/strings.h"
#include "output/collapse_stacks.h"
#include "output/divide.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/text_fallback_sink.h"
#include "types/units.h"

namespace espy::output {

namespace {

// A map as last printed: lists of JSON, without their brackets.
struct Profile {
  std::string_view unit;
  std::string samples, weights;
  uint64_t total = 0;
};

class SpeedscopeSink final : public TextFallbackSink {
 public:
  SpeedscopeSink(Writer& out, TextStyle style, bool quiet)
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
      const std::string_view comma = profile.total == 0 ? "" : ",";
      profile.samples += fmt::format("{}[{}]", comma, stack(entry.key, map.key_names));
      profile.weights += fmt::format("{}{}", comma, weight);
      add_weight(profile.total, weight);
    }
    profiles_[std::string(map.name)] = std::move(profile);
  }

  void finish() override {
    if (profiles_.empty()) message("warnf", "no map has stacks in its keys, so there is no profile", "", 0, 0, 0);
    out_.write("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"espy " ESPY_VERSION
               "\",\n\"shared\":{\"frames\":[");
    out_.write(frames_ + "]},\n\"profiles\":[");
    std::string_view comma = "\n";
    for (const auto& [name, profile] : profiles_) {
      out_.write(fmt::format(
          "{}{{\"type\":\"sampled\",\"name\":{},\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},\n\"samples\":[{}],\n"
          "\"weights\":[{}]}}",
          comma, quoted(name), profile.unit, profile.total, profile.samples, profile.weights));
      comma = ",\n";
    }
    out_.write("]}\n");
  }

 private:
  // The numbers of the frames, outermost first: the other parts of the key, then the frames of the stacks.
  std::string stack(const Value& key, std::span<const std::string> names) {
    const KeyStack parts = split_key(key, names);
    std::string out;
    const auto add = [&](const std::string& name, const std::string& file) {
      out += fmt::format("{}{}", out.empty() ? "" : ",", frame(name, file));
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
    if (is_new) {
      frames_ += fmt::format("{}{{\"name\":{}", frames_.empty() ? "" : ",\n", quoted(printable_line(name)));
      frames_ += file.empty() ? "}" : fmt::format(",\"file\":{}}}", quoted(printable_line(file)));
    }
    return known->second;
  }

  Writer& out_;
  TextStyle style_;
  std::string frames_;
  std::map<std::pair<std::string, std::string>, size_t> numbers_;  // by name and file
  std::map<std::string, Profile> profiles_;                        // by the map's name
};

std::unique_ptr<Sink> make_speedscope_sink(Writer& out, TextStyle style, bool quiet) {
  return std::make_unique<SpeedscopeSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kSpeedscopeSink = {
    .name = "speedscope", .doc = "maps keyed by stacks, for www.speedscope.app", .create = make_speedscope_sink};

}  // namespace espy::output
