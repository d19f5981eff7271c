#include "base/mounts.h"

#include <sys/sysmacros.h>

#include <algorithm>

#include "base/strings.h"

namespace espy {

std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = split(line, ' ');
  const auto end = std::ranges::find(fields, std::string_view("-"));
  if (end - fields.begin() < 5 || end == fields.end() || end + 1 == fields.end()) return std::nullopt;
  const auto device = split(fields[2], ':');
  const auto id = parse_int(fields[0]);
  const auto major_number = parse_int(device.front()), minor_number = parse_int(device.back());
  if (!id || device.size() != 2 || !major_number || !minor_number) return std::nullopt;
  return Mount{static_cast<uint64_t>(*id),
               makedev(static_cast<unsigned>(*major_number), static_cast<unsigned>(*minor_number)), fields[4], end[1]};
}

}  // namespace espy
