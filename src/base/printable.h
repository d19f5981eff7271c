// Text from outside, for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace espy {

// Returns `text` with each byte as `\xNN` that is a control character, belongs to an invisible or direction-changing
// one, or is not UTF-8. A newline and a tab stay.
std::string printable(std::string_view text);

// The same for a part of a line: a newline and a tab are escaped, too.
std::string printable_line(std::string_view text);

// Returns `text` as UTF-8 that no other text has: bytes that are no UTF-8 become `\xNN`, and a backslash in front of
// what looks so, `\x5c`. Different texts stay different in printable_line() of this, too. Not to be applied twice.
std::string exact_utf8(std::string_view text);

// Whether a backslash is at the front of `text` that begins `\xNN`, with digits as these functions write them.
bool looks_escaped(std::string_view text);

// Returns the number of bytes of the UTF-8 character at the front of `text`; 0 if there is none. Requires a text that
// is not empty.
size_t utf8_length(std::string_view text);

}  // namespace espy
