// A flame graph: one self-contained SVG file.
//
// Each frame is a box below its caller, as wide as its share of the total; equal frames of one caller are merged, and
// sorted by name. The root is at the top, as on the page of --listen: the wide frames are on the first screen, however
// deep the stacks are. The picture does not need the script, and scales with the window; with it, a click zooms into a
// frame, a search highlights frames and shows their share, Escape zooms out. A legend names the colours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "flame_svg.h"
#include "output/forwarding_sink.h"
#include "output/profile_formats.h"
#include "output/quantity.h"
#include "output/sink.h"

namespace espy::output {

namespace {

constexpr int kRow = 18, kTop = 104, kBottom = 16;  // pixels
constexpr double kNarrowest = 0.005;                // percent: narrower boxes are omitted
constexpr double kNarrowestSeen = 0.04;             // percent: without a script, half a pixel of 1,250
constexpr double kNarrowestWide = 0.4;              // percent: without a script, boxes have no edges below
constexpr double kNarrowestLabel = 2;               // percent: without a script, labels are left out below

size_t levels_of(const CallTree& tree) {
  size_t deepest = 0;
  for (const auto& [frame, callee] : tree.callees) deepest = std::max(deepest, levels_of(callee));
  return deepest + 1;
}

// A colour of the kind's range. `a` and `b`, from 0 to 1, choose within it.
std::string colour(FrameKind kind, double a, double b) {
  double hue = 0, saturation = 0, lightness = 0.66 + 0.08 * b;
  switch (kind) {
    case FrameKind::kUser: hue = 14 + 32 * a, saturation = 0.88; break;
    case FrameKind::kInlined: hue = 46 + 12 * a, saturation = 0.88; break;
    case FrameKind::kKernel: hue = 198 + 20 * a, saturation = 0.66; break;
    case FrameKind::kText: hue = 120 + 30 * a, saturation = 0.30; break;
    case FrameKind::kUnknown: lightness += 0.08; break;
  }
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 30, 12);
    const double value =
        lightness - saturation * std::min(lightness, 1 - lightness) * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(value * 255));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

// By the name's hash.
std::string colour(const FoldedFrame& frame) {
  uint32_t hash = 2166136261u;
  for (const char c : frame.name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return colour(frame.kind, (hash >> 8 & 0xff) / 255.0, (hash >> 16 & 0xff) / 255.0);
}

// What the kinds are called, in the order of the legend.
constexpr std::pair<FrameKind, std::string_view> kKinds[] = {{FrameKind::kUser, "user code"},
                                                             {FrameKind::kInlined, "inlined function"},
                                                             {FrameKind::kKernel, "kernel"},
                                                             {FrameKind::kUnknown, "no name known"},
                                                             {FrameKind::kText, "other part of the key"}};

class Picture {
 public:
  // `noun`: what the weights count, "samples".
  Picture(const CallTree& all, std::string title, std::string noun)
      : all_(all), title_(std::move(title)), noun_(std::move(noun)), levels_(levels_of(all)) {}

  std::string render() {
    const FoldedFrame root = {"all", FrameKind::kUnknown};
    draw(root, all_, 0, 0, all_.total);
    const size_t height = kTop + levels_ * kRow + kBottom;
    return fill(kFlameSvg, {{"height", std::to_string(height)},
                            {"row", std::to_string(kRow)},
                            {"top", std::to_string(kTop)},
                            {"details_y", std::to_string(kTop - 14)},
                            {"title", escape_markup(title_)},
                            {"note", escape_markup(note())},
                            {"legend", legend()},
                            {"boxes", body_}});
  }

 private:
  double percent(uint64_t part, uint64_t whole) const {
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  }

  // `before`: the weight to the left of the box.
  void draw(const FoldedFrame& frame, const CallTree& node, size_t depth, uint64_t before, uint64_t of_caller) {
    const double width = percent(node.total, all_.total);
    if (width < kNarrowest) {
      ++too_narrow_;
      return;
    }
    ++boxes_;
    if (depth > 0) kinds_.insert(frame.kind);
    const std::string name = escape_markup(frame.name);
    const size_t y = kTop + depth * kRow;
    std::string share = fmt::format("{} ({:.2f}%", with_commas(node.total), width);
    if (of_caller != all_.total) share += fmt::format(", {:.2f}% of its caller", percent(node.total, of_caller));
    body_ += fmt::format(
        "<svg class=\"f{}\" data-d=\"{}\" x=\"{:.4f}%\" y=\"{}\" width=\"{:.4f}%\" "
        "height=\"{}\"{}><title>{}\n{})</title>"
        "<rect width=\"100%\" height=\"100%\" rx=\"2\" fill=\"{}\"/><text x=\"4\" y=\"12.8\"{}>{}</text></svg>\n",
        width < kNarrowestWide ? "" : " wide", depth, percent(before, all_.total), y, width, kRow - 1,
        width < kNarrowestSeen ? " style=\"display:none\"" : "", name, share, colour(frame),
        width < kNarrowestLabel ? " display=\"none\"" : "", name);
    for (const auto& [callee, below] : node.callees) {
      draw(callee, below, depth + 1, before, node.total);
      add_weight(before, below.total);
    }
  }

  std::string note() const {
    std::string out =
        fmt::format("{} {} in {} frames, {} deep", with_commas(all_.total), noun_, with_commas(boxes_), levels_ - 1);
    if (all_.total > 0 && too_narrow_ > 0)
      out += fmt::format(" ({} more are too narrow to be seen)", with_commas(too_narrow_));
    return out;
  }

  std::string legend() const {
    std::string out;
    for (const auto& [kind, name] : kKinds)
      if (kinds_.contains(kind))
        out += fmt::format("{}<tspan fill=\"{}\">\u25a0</tspan> {}", out.empty() ? "" : "   ", colour(kind, 0.5, 0.5),
                           name);
    return out;
  }

  const CallTree& all_;
  std::string title_, noun_;
  std::set<FrameKind> kinds_;
  size_t levels_;
  std::string body_;
  size_t boxes_ = 0, too_narrow_ = 0;
};

// Keeps the last state of each map until the end; draws several maps side by side.
class FlameSink final : public TextFallbackSink {
 public:
  FlameSink(Writer& out, TextStyle style, Quiet quiet)
      : TextFallbackSink(style, quiet), out_(out), style_(std::move(style)) {}

  void map(const MapView& map) override {
    if (!has_stacks(map)) return TextFallbackSink::map(map);
    maps_[std::string(map.name)] = {collapse_stacks(map, style_), noun_of(map)};
  }

  void finish() override {
    CallTree all;
    std::string title, noun;
    for (const auto& [name, map] : maps_) {
      noun = noun.empty() || noun == map.noun ? map.noun : "in all";
      title += (title.empty() ? "Stacks of " : ", ") + name;
      for (const FoldedStack& stack : map.stacks) {
        std::vector<FoldedFrame> frames = stack.frames;
        if (maps_.size() > 1) frames.insert(frames.begin(), {name, FrameKind::kText});
        all.add(frames, stack.weight);
      }
    }
    if (all.total == 0) message("warnf", "no map has stacks in its keys, so the flame graph is empty", "", 0, 0, 0);
    out_.write(Picture(all, title.empty() ? "No stacks" : title, noun.empty() ? "in all" : noun).render());
  }

 private:
  struct Map {
    std::vector<FoldedStack> stacks;
    std::string noun;  // what the weights count
  };

  std::string noun_of(const MapView& map) const {
    if (map.kind == types::Kind::kHist || map.kind == types::Kind::kLhist) return "values";
    if (map.kind == types::Kind::kCount) return map.sampled == program::SamplePeriod{} ? "events" : "samples";
    TextStyle style = style_;
    style.has_units = true;
    const types::Unit unit = unit_for(map, style);
    return unit == types::Unit::kNone ? "in all" : std::string(types::long_name(unit));
  }

  Writer& out_;
  TextStyle style_;
  std::map<std::string, Map> maps_;
};

std::unique_ptr<Sink> make_flame_sink(Writer& out, TextStyle style, Quiet quiet) {
  return std::make_unique<FlameSink>(out, std::move(style), quiet);
}

}  // namespace

extern constexpr SinkRow kFlameSink = {.name = "flame",
                                       .doc = "maps keyed by stacks, as a flame graph (SVG)",
                                       .shows_stacks = true,
                                       .create = make_flame_sink};

}  // namespace espy::output
