#include "kernel/cpu_list.h"

#include <algorithm>

#include "base/files.h"
#include "base/strings.h"

namespace espy::kernel {

namespace {

constexpr uint32_t kMaxCpu = 1U << 20;  // far above what kernels allow

struct Range {
  uint32_t first = 0, last = 0;
};

// Of "3" or "0-3"; nullopt if it is neither.
std::optional<Range> parse_range(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = parse_int(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_int(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return std::nullopt;
  return Range{static_cast<uint32_t>(*first), static_cast<uint32_t>(*last)};
}

std::optional<std::vector<Range>> parse_ranges(std::string_view list) {
  std::vector<Range> out;
  for (const std::string_view text : split(trim(list), ',')) {
    const auto range = parse_range(text);
    if (!range) return std::nullopt;
    out.push_back(*range);
  }
  return out;
}

}  // namespace

std::optional<uint32_t> parse_cpu_count(std::string_view list) {
  const auto ranges = parse_ranges(list);
  if (!ranges) return std::nullopt;
  uint32_t count = 0;
  for (const Range& range : *ranges) count = std::max(count, range.last + 1);
  return count;
}

std::optional<uint32_t> possible_cpu_count(const std::string& root) {
  const auto text = read_file(root + "/sys/devices/system/cpu/possible");
  return text ? parse_cpu_count(*text) : std::nullopt;
}

std::vector<uint32_t> online_cpus() {
  const auto text = read_file("/sys/devices/system/cpu/online");
  if (!text) return {0};
  const auto ranges = parse_ranges(*text);
  if (!ranges) return {0};
  std::vector<uint32_t> out;
  for (const Range& range : *ranges)
    for (uint32_t cpu = range.first; cpu <= range.last; ++cpu) out.push_back(cpu);
  return out;
}

}  // namespace espy::kernel
