#include "lsp/document.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "syntax/lexer.h"

namespace espy::lsp {
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
