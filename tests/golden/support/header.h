// The header of a test file: comments `// KEY: VALUE` before the first line of its script.
//
// A comment is a key line if it begins with one or two lower-case words and a colon, or with what looks like a misspelt
// key ("Expect:"). Other comments are prose. A key line must have a known key and a value. If nothing stands behind the
// colon, the value is the block of lines below, which begin with "//" and three spaces:
//
//   // run:
//   //   $ESPY --version
//   //   echo done
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace espy::golden {

struct HeaderKey {
  std::string_view name;
  bool is_repeatable = false;
};

struct HeaderLine {
  std::string key;
  std::string value;
  uint32_t line_number = 0;  // from 1
};

// The key lines of the file `path`, whose content is `text`, in their order. Stops at the first section (`//--- `).
// Errors, as "PATH:LINE: ...": an unknown key (with the list of `keys`), a key without a value, a repeated key that is
// not repeatable, and a known key behind the header, where nothing reads it.
Result<std::vector<HeaderLine>> read_header(const std::string& path, std::string_view text,
                                            std::span<const HeaderKey> keys);

// "PATH:LINE: MESSAGE".
tl::unexpected<Error> fail_at(const std::string& path, uint32_t line_number, std::string_view message);

}  // namespace espy::golden
