#include "symbols/perf_map.h"

#include <algorithm>

#include "base/strings.h"

namespace espy::symbols {
namespace {

// Removes a hexadecimal number, also with 0x as the JVM writes addresses, at the front of `line`.
std::optional<uint64_t> take_hex(std::string_view& line) {
  if (line.starts_with("0x")) line.remove_prefix(2);
  return take_number(line, 16);
}

}  // namespace

PerfMap::PerfMap(std::string text) : text_(std::move(text)) {
  constexpr size_t kMaxEntries = 4 << 20;
  for (std::string_view rest = text_; !rest.empty() && entries_.size() < kMaxEntries;) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::optional<uint64_t> start = take_hex(line);
    if (!start || !line.starts_with(' ')) continue;
    line.remove_prefix(1);
    const std::optional<uint64_t> size = take_hex(line);
    const std::string_view name = trim(line);
    if (size && line.starts_with(' ') && !name.empty()) entries_.push_back({*start, *size, name});
  }
  // Reversed, the last line of each start comes first, which is the one that `unique` keeps.
  std::ranges::reverse(entries_);
  std::ranges::stable_sort(entries_, {}, &Entry::start);
  const auto same_start = [](const Entry& a, const Entry& b) { return a.start == b.start; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same_start), entries_.end());
}

std::optional<PerfMap::Entry> PerfMap::at(uint64_t address) const {
  const auto after = std::ranges::upper_bound(entries_, address, {}, &Entry::start);
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *(after - 1);
  if (address - entry.start >= entry.size) return std::nullopt;
  return entry;
}

}  // namespace espy::symbols
