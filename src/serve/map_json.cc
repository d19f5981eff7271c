#include "serve/map_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "output/collapse_stacks.h"
#include "output/json.h"

namespace espy::serve {

namespace {

constexpr size_t kMaxEntries = 500;
constexpr size_t kMaxHistograms = 50;
constexpr size_t kMaxStacks = 5000;

bool is_histogram(types::Kind kind) { return kind == types::Kind::kHist || kind == types::Kind::kLhist; }

// A key as an array of texts.
std::string key_json(const output::Value& key, const output::TextStyle& style) {
  const auto* tuple = std::get_if<output::TupleValue>(&key.node);
  if (tuple == nullptr) return fmt::format("[{}]", output::json_text(key, style));
  std::string out;
  for (const output::Value& item : tuple->items)
    out += fmt::format("{}{}", out.empty() ? "[" : ",", output::json_text(item, style));
  return out + "]";
}

void append_entries(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style,
                    std::string& out) {
  const size_t most = is_histogram(map.value) ? kMaxHistograms : kMaxEntries;
  const size_t first = view.entries.size() - std::min(view.entries.size(), most);
  out += ",\"entries\":[";
  for (size_t i = first; i < view.entries.size(); ++i) {
    const output::MapEntry& entry = view.entries[i];
    out += fmt::format("{}[{},{}]", i > first ? "," : "", view.is_scalar ? "[]" : key_json(entry.key, style),
                       output::json(entry.value, style));
  }
  out += "]";
}

// Numbers the frames of stacks.
class FrameTable {
 public:
  size_t number_of(const std::string& name) {
    const auto [found, is_new] = numbers_.try_emplace(name, numbers_.size());
    if (is_new) json_ += (json_.empty() ? "" : ",") + output::quoted(name);
    return found->second;
  }
  std::string json() const { return "[" + json_ + "]"; }

 private:
  std::unordered_map<std::string, size_t> numbers_;
  std::string json_;
};

void append_stacks(const output::MapView& view, const output::TextStyle& style, std::string& out) {
  std::vector<output::FoldedStack> stacks = output::collapse_stacks(view, style);
  std::ranges::stable_sort(stacks, std::ranges::greater(), &output::FoldedStack::weight);
  if (stacks.size() > kMaxStacks) stacks.resize(kMaxStacks);
  FrameTable frames;
  out += ",\"stacks\":[";
  for (size_t i = 0; i < stacks.size(); ++i) {
    out += fmt::format("{}[{}", i > 0 ? "," : "", stacks[i].weight);
    for (const output::FoldedFrame& frame : stacks[i].frames)
      out += fmt::format(",{}", frames.number_of(output::folded_name(frame)));
    out += "]";
  }
  out += "],\"frames\":" + frames.json();
}

}  // namespace

std::string map_json(const DescribedMap& map, const output::MapView& view, const output::TextStyle& style) {
  std::string out = fmt::format("{{\"name\":{},\"kind\":{},\"scalar\":{},\"help\":{},\"keys\":{},\"labels\":[",
                                output::quoted(map.name), output::quoted(types::kind_word(map.value)), view.is_scalar,
                                output::quoted(map.help), view.entries.size());
  for (const std::string& label : map.labels) out += (out.ends_with('[') ? "" : ",") + output::quoted(label);
  out += "]";
  if (view.seen_share < 1) out += fmt::format(",\"seen\":{:.4g}", view.seen_share);
  if (output::has_stacks(view))
    append_stacks(view, style, out);
  else
    append_entries(map, view, style, out);
  return out + "}";
}

}  // namespace espy::serve
