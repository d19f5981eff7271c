#include "lsp/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "syntax/lexer.h"

namespace espy::lsp {

namespace {

// Of the character that begins with this byte in UTF-8. A byte that begins none is taken for one.
uint32_t length_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte >= 0xf0) return 4;
  if (byte >= 0xe0) return 3;
  return byte >= 0xc0 ? 2 : 1;
}

// Characters of four bytes are pairs in UTF-16.
uint32_t length_units(char first) { return length_bytes(first) == 4 ? 2 : 1; }

}  // namespace

Text::Text(std::string bytes) : bytes_(std::move(bytes)), line_starts_{0} {
  for (uint32_t i = 0; i < bytes_.size(); ++i)
    if (bytes_[i] == '\n') line_starts_.push_back(i + 1);
}

// Without its newline.
uint32_t Text::line_end(uint32_t line) const {
  const bool is_last = line + 1 >= line_starts_.size();
  uint32_t end = is_last ? static_cast<uint32_t>(bytes_.size()) : line_starts_[line + 1] - 1;
  if (!is_last && end > line_starts_[line] && bytes_[end - 1] == '\r') --end;
  return end;
}

Position Text::position(uint32_t offset) const {
  offset = std::min(offset, static_cast<uint32_t>(bytes_.size()));
  const auto after = std::ranges::upper_bound(line_starts_, offset);
  Position out = {static_cast<uint32_t>(after - line_starts_.begin()) - 1, 0};
  for (uint32_t at = line_starts_[out.line]; at < offset; at += length_bytes(bytes_[at]))
    out.character += length_units(bytes_[at]);
  return out;
}

uint32_t Text::offset(Position position) const {
  if (position.line >= line_starts_.size()) return static_cast<uint32_t>(bytes_.size());
  const uint32_t end = line_end(position.line);
  uint32_t at = line_starts_[position.line];
  for (uint32_t units = 0; at < end && units < position.character; at += length_bytes(bytes_[at]))
    units += length_units(bytes_[at]);
  return std::min(at, end);
}

namespace {

constexpr std::string_view kFileScheme = "file://";

bool stays(char c) { return syntax::is_word(c) || c == '/' || c == '-' || c == '.' || c == '~'; }

}  // namespace

std::string path_of(std::string_view uri) {
  if (!uri.starts_with(kFileScheme)) return std::string(uri);
  uri.remove_prefix(kFileScheme.size());
  std::string out;
  for (size_t i = 0; i < uri.size(); ++i) {
    std::string_view digits = uri.substr(i + 1, 2);
    const auto code = uri[i] == '%' && digits.size() == 2 ? take_number(digits, 16) : std::nullopt;
    if (code && digits.empty()) {
      out += static_cast<char>(*code);
      i += 2;
    } else {
      out += uri[i];
    }
  }
  return out;
}

std::string uri_of(std::string_view path) {
  if (!path.starts_with('/')) return std::string(path);
  std::string out(kFileScheme);
  for (const char c : path) out += stays(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace espy::lsp
