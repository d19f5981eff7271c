// Text that is shown or matched: what a terminal gets, formats of printf, globs against names of files and symbols.
#include <cstdlib>

#include "../reader.h"
#include "base/strings.h"
#include "output/format.h"

namespace espy::fuzz {

void run_text(std::string_view bytes) {
  const std::string shown = printable(bytes);
  for (const char c : shown)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') std::abort();
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view line = bytes.substr(0, end), rest = bytes.substr(end);
  if (const auto formatter = output::Formatter::create(line); !formatter) use(formatter.error().message);
  constexpr size_t kMaxPatternBytes = 256, kMaxNameBytes = 4096;
  glob_match(line.substr(0, kMaxPatternBytes), rest.substr(0, kMaxNameBytes));
  use(escape(bytes));
}

}  // namespace espy::fuzz
