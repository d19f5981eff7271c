#include "watch/keys.h"

#include <algorithm>

#include "base/printable.h"

namespace espy::watch {

namespace {

// Returns the length of the sequence at the front, which begins with an escape: "\033[1;5A", "\033OP", "\033x".
size_t sequence_bytes(std::string_view bytes) {
  if (bytes.size() < 2) return bytes.size();
  if (bytes[1] != '[' && bytes[1] != 'O') return 2;
  size_t end = 2;
  while (end < bytes.size() && (bytes[end] < 0x40 || bytes[end] > 0x7e)) ++end;
  return std::min(end + 1, bytes.size());
}

Key key_of(std::string_view character) {
  switch (character[0]) {
    case '\n':
    case '\r': return {Key::Kind::kEnter};
    case '\b':
    case 0x7f: return {Key::Kind::kBackspace};
    default: break;
  }
  const std::string text(character);
  return printable_line(text) == text ? Key{Key::Kind::kText, text} : Key{};
}

}  // namespace

std::vector<Key> keys_of(std::string_view bytes) {
  std::vector<Key> out;
  while (!bytes.empty()) {
    const bool is_escape = bytes[0] == '\033';
    const size_t size = is_escape ? sequence_bytes(bytes) : std::max<size_t>(utf8_length(bytes), 1);
    out.push_back(!is_escape ? key_of(bytes.substr(0, size)) : Key{size == 1 ? Key::Kind::kEscape : Key::Kind::kOther});
    bytes.remove_prefix(size);
  }
  return out;
}

}  // namespace espy::watch
