#include "serve/http_request.h"

#include <algorithm>

#include "base/strings.h"

namespace espy::serve {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

// RFC 9110, 5.6.2
bool is_token_character(char c) {
  const bool is_alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
  return is_alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_character); }

bool is_visible(char c) { return c > ' ' && c <= '~'; }

// Blanks, tabs, visible characters, and bytes beyond ASCII.
bool is_field_character(char c) { return c == '\t' || c == ' ' || is_visible(c) || (c & 0x80) != 0; }

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// Removes the first line from `text` and returns it without its end. Requires that there is one.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find(kLineEnd);
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + kLineEnd.size());
  return line;
}

// "GET /path?query HTTP/1.1"
bool read_request_line(std::string_view line, HttpRequest& out) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return false;
  out.method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  if (!is_token(out.method) || !target.starts_with('/') || !std::ranges::all_of(target, is_visible)) return false;
  out.keeps_alive = version == "HTTP/1.1";
  const size_t mark = target.find('?');
  out.path = target.substr(0, mark);
  if (mark != target.npos) out.query = target.substr(mark + 1);
  return true;
}

struct HeaderCounts {
  size_t hosts = 0;
  bool has_body = false;
};

bool read_header(std::string_view line, HttpRequest& out, HeaderCounts& counts) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) return false;  // also a line that continues the last one
  const std::string name = to_lower(line.substr(0, colon));
  const std::string_view value = without_blanks(line.substr(colon + 1));
  if (!std::ranges::all_of(value, is_field_character)) return false;
  if (name == "host") {
    out.host = value;
    ++counts.hosts;
  } else if (name == "accept") {
    out.accept = value;
  } else if (name == "authorization") {
    out.authorization = value;
  } else if (name == "connection") {
    if (to_lower(value).find("close") != std::string::npos) out.keeps_alive = false;
  } else if (name == "transfer-encoding") {
    counts.has_body = true;
  } else if (name == "content-length") {
    counts.has_body |= value != "0";
  }
  return true;
}

}  // namespace

ParsedRequest parse_request(std::string_view bytes) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n";
  const size_t end = bytes.substr(0, kMaxRequestBytes).find(kHeadEnd);
  if (end == bytes.npos) return {bytes.size() < kMaxRequestBytes ? RequestState::kIncomplete : RequestState::kTooLarge};
  ParsedRequest out{RequestState::kMalformed, end + kHeadEnd.size()};
  std::string_view head = bytes.substr(0, end + kLineEnd.size());
  if (!read_request_line(take_line(head), out.request)) return out;
  HeaderCounts counts;
  while (!head.empty())
    if (!read_header(take_line(head), out.request, counts)) return out;
  if (counts.hosts != 1) return out;
  out.state = counts.has_body ? RequestState::kHasBody : RequestState::kComplete;
  return out;
}

std::string_view query_parameter(std::string_view query, std::string_view name) {
  for (const std::string_view part : split(query, '&')) {
    const size_t equals = part.find('=');
    if (equals != part.npos && part.substr(0, equals) == name) return part.substr(equals + 1);
  }
  return {};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace espy::serve
