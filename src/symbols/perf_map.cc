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

PerfMap::PerfMap(std::string_view text) {
  add(text);
  sort();
}

Result<PerfMap> PerfMap::read(const UntrustedFile& file) {
  constexpr uint64_t kPartBytes = 256 << 10;
  constexpr size_t kLeastKept = 16;  // one byte of so many
  PerfMap out;
  std::string part;  // begins with the start of a line that the part before has cut
  for (uint64_t at = 0; at < file.size_bytes;) {
    const std::string more = TRY(file.read_at(at, std::min(kPartBytes, file.size_bytes - at)));
    at += more.size();
    part += more;
    const bool is_last = more.empty() || at == file.size_bytes;
    const size_t end = is_last ? part.size() : part.rfind('\n') + 1;  // 0 if there is none
    if (out.add(std::string_view(part).substr(0, end)) < part.size() / kLeastKept || is_last) break;
    part.erase(0, end);
  }
  out.sort();
  return out;
}

size_t PerfMap::add(std::string_view lines) {
  constexpr size_t kMaxEntries = 4 << 20;
  constexpr size_t kMaxNameBytes = 16 << 10;
  const size_t first = entries_.size();
  size_t bytes = 0;
  while (!lines.empty() && entries_.size() < kMaxEntries) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::optional<uint64_t> start = take_hex(line);
    if (!start || !line.starts_with(' ')) continue;
    line.remove_prefix(1);
    const std::optional<uint64_t> size = take_hex(line);
    const std::string_view name = trim(line.substr(0, std::min(line.find('\0'), kMaxNameBytes)));
    if (!size || !line.starts_with(' ') || name.empty()) continue;
    entries_.push_back({*start, *size, name});
    bytes += name.size();
  }
  std::string& names = names_.emplace_back();
  names.reserve(bytes);  // so that it does not move
  for (size_t i = first; i < entries_.size(); ++i) {
    const size_t at = names.size();
    names += entries_[i].name;
    entries_[i].name = std::string_view(names).substr(at);
  }
  names_bytes_ += names.capacity();
  return bytes + (entries_.size() - first) * sizeof(Entry);
}

void PerfMap::sort() {
  // Reversed, the last line of each start comes first, which is the one that `unique` keeps.
  std::ranges::reverse(entries_);
  std::ranges::stable_sort(entries_, {}, &Entry::start);
  const auto same_start = [](const Entry& a, const Entry& b) { return a.start == b.start; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same_start), entries_.end());
  entries_.shrink_to_fit();
}

std::optional<PerfMap::Entry> PerfMap::at(uint64_t address) const {
  const auto after = std::ranges::upper_bound(entries_, address, {}, &Entry::start);
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *(after - 1);
  if (address - entry.start >= entry.size) return std::nullopt;
  return entry;
}

}  // namespace espy::symbols
