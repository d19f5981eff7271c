// Where a server listens, and which names of it a browser may use.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace espy::serve {

struct Address {
  std::string host;  // numeric: "127.0.0.1", "::1"
  uint16_t port = 0;
  bool is_ipv6 = false;
  bool is_loopback = true;

  std::string url() const;  // "http://127.0.0.1:9435/"
};

// Reads "PORT", ":PORT", "ADDRESS:PORT", "[IPV6]:PORT" or "localhost:PORT". Without an address it is 127.0.0.1. Port 0
// stands for any free port.
Result<Address> parse_address(std::string_view text);

// A socket that listens there, and does not block. Sets the port that the kernel has chosen.
Result<OwnedFd> listen_at(Address& address);

// Whether a Host header names this machine by its loopback: "localhost", "127.0.0.1:9435", "[::1]". A page of another
// site whose name its owner has made to lead to 127.0.0.1 sends that name.
bool is_loopback_name(std::string_view host);

}  // namespace espy::serve
