// Requests as the server gives them to those who answer: GET and HEAD without a body.
#pragma once

#include <string_view>

namespace espy::serve {

// Views of what the server keeps until the request is answered.
struct HttpRequest {
  std::string_view path;   // "/metrics"; not decoded
  std::string_view query;  // what follows the `?`
  std::string_view host;
  std::string_view accept;
  std::string_view authorization;
};

// The value of a parameter of a query, `NAME=VALUE&...`; "" if there is none. Not decoded.
std::string_view query_parameter(std::string_view query, std::string_view name);

// Whether both are equal, in a time that depends on their lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace espy::serve
