// Requests of HTTP/1.1 (RFC 9112), as far as a server of a few fixed pages reads them: GET and HEAD without a body.
#pragma once

#include <cstddef>
#include <string_view>

namespace espy::serve {

constexpr size_t kMaxRequestBytes = 8192;

// Views of the bytes that were parsed.
struct HttpRequest {
  std::string_view method;
  std::string_view path;   // "/metrics"; not decoded
  std::string_view query;  // what follows the `?`
  std::string_view host;
  std::string_view accept;
  std::string_view authorization;
  bool keeps_alive = true;
};

enum class RequestState {
  kIncomplete,
  kComplete,
  kMalformed,  // 400
  kTooLarge,   // 431
  kHasBody,    // 413
};

struct ParsedRequest {
  RequestState state = RequestState::kIncomplete;
  size_t size_bytes = 0;  // kComplete: of the request; what follows is the next one
  HttpRequest request = {};
};

// Parses the request at the front of `bytes`. Lines must end with CRLF, and a request must have one Host.
ParsedRequest parse_request(std::string_view bytes);

// The value of a parameter of a query, `NAME=VALUE&...`; "" if there is none. Not decoded.
std::string_view query_parameter(std::string_view query, std::string_view name);

// Whether both are equal, in a time that depends on their lengths alone.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace espy::serve
