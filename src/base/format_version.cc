#include "base/format_version.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "base/untrusted_file.h"

namespace espy {

std::string release_text(uint32_t release) {
  if (release == 0) return "a later release";
  return fmt::format("{}.{}.{}", release / 10'000, release / 100 % 100, release % 100);
}

std::optional<uint32_t> parse_release(std::string_view text) {
  constexpr int64_t kMostMajor = 99'999, kMostMinor = 99;
  const auto parts = split(text, '.');
  if (parts.size() != 3) return std::nullopt;
  uint32_t out = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto part = parse_int(parts[i]);
    if (!part || *part < 0 || *part > (i == 0 ? kMostMajor : kMostMinor)) return std::nullopt;
    out = out * 100 + static_cast<uint32_t>(*part);
  }
  return out;
}

tl::unexpected<Error> fail_later_format(std::string_view what, uint64_t format, uint32_t readable_since) {
  return fail(fmt::format("{} of format {}, which espy {} cannot read", what, format, ESPY_VERSION), kRefusedFile,
              fmt::format("espy {} reads it",
                          readable_since == 0 ? "of a later release" : release_text(readable_since) + " or later"));
}

}  // namespace espy
