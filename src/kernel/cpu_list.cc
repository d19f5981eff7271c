#include "kernel/cpu_list.h"

#include <algorithm>

#include "base/fd.h"
#include "base/strings.h"

namespace espy::kernel {

std::optional<uint32_t> parse_cpu_count(std::string_view list) {
  uint32_t count = 0;
  for (const std::string_view range : split(trim(list), ',')) {
    const auto last = parse_int(range.substr(range.find('-') + 1));
    if (!last || *last < 0 || *last >= UINT32_MAX) return std::nullopt;
    count = std::max(count, static_cast<uint32_t>(*last) + 1);
  }
  return count;
}

std::optional<uint32_t> possible_cpu_count(const std::string& root) {
  const auto text = read_file(root + "/sys/devices/system/cpu/possible");
  return text ? parse_cpu_count(*text) : std::nullopt;
}

}  // namespace espy::kernel
