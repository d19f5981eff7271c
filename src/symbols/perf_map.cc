#include "symbols/perf_map.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace espy::symbols {

PerfMap::PerfMap(std::string text) : text_(std::move(text)) {
  for (const std::string_view line : split(text_, '\n')) {
    Entry entry;
    const char* end = line.data() + line.size();
    const auto start = std::from_chars(line.data(), end, entry.start, 16);
    if (start.ec != std::errc{} || start.ptr == end || *start.ptr != ' ') continue;
    const auto size = std::from_chars(start.ptr + 1, end, entry.size, 16);
    if (size.ec != std::errc{} || size.ptr == end || *size.ptr != ' ') continue;
    entry.name = trim(std::string_view(size.ptr + 1, static_cast<size_t>(end - size.ptr - 1)));
    if (!entry.name.empty()) entries_.push_back(entry);
  }
  // The last line about a start wins: reversed, it is the first, which is the one `unique` keeps.
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
