// What is typed at a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace espy::watch {

struct Key {
  enum class Kind { kText, kEnter, kBackspace, kEscape, kOther };
  Kind kind = Kind::kOther;
  std::string text = {};  // kText: a character
};

// Takes what one read gave. An escape that nothing follows is the key; others begin a sequence, of an arrow, say, and
// are kOther. What is no text is left out.
std::vector<Key> keys_of(std::string_view bytes);

}  // namespace espy::watch
