// Characters that editors and web pages put instead of characters of the language.
#pragma once

#include <string>
#include <string_view>

namespace espy::syntax {

// Returns "this is U+00A0, a no-break space: type a space" for text that begins with such a character; "" for other
// text.
std::string foreign_character(std::string_view text);

}  // namespace espy::syntax
