// Versions of file formats. A file has the number of its format and the first release of espy that reads it. An earlier
// espy refuses the file, and names this release.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace espy {

// A release of espy as a number: 1.2.3 is 10203. 0: not known.
constexpr uint32_t release_number(uint32_t major, uint32_t minor, uint32_t patch) {
  return major * 10'000 + minor * 100 + patch;
}
// "1.2.3"; "a later release" for 0.
std::string release_text(uint32_t release);
// The number of "1.2.3"; nullopt for another text.
std::optional<uint32_t> parse_release(std::string_view text);

// The error about a file of a later format. `what` is its subject, such as "x.rec is a recording".
tl::unexpected<Error> fail_later_format(std::string_view what, uint64_t format, uint32_t readable_since);

}  // namespace espy
