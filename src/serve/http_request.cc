#include "serve/http_request.h"

#include "base/strings.h"

namespace espy::serve {

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
