// Text from outside, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace espy {

// Returns `text` with each byte as `\xNN` that is a control character, belongs to an invisible or direction-changing
// one, or is not UTF-8. A newline and a tab stay.
std::string printable(std::string_view text);

}  // namespace espy
