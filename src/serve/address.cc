#include "serve/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/strings.h"

namespace espy::serve {

namespace {

constexpr int kBacklog = 64;
constexpr std::string_view kHint = "--listen 9435 and --listen 127.0.0.1:9435 are for this machine, [::]:9435 for all";

std::optional<uint16_t> parse_port(std::string_view text) {
  const auto port = take_number(text, 10);
  return port && text.empty() && *port <= UINT16_MAX ? std::optional(static_cast<uint16_t>(*port)) : std::nullopt;
}

// ::ffff:127.0.0.1 is the loopback of IPv4.
bool is_loopback(const in6_addr& address) {
  return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127);
}

// nullopt if it is no numeric address.
std::optional<Address> parse_host(const std::string& text) {
  Address out{.host = text};
  in_addr v4 = {};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    out.is_loopback = ntohl(v4.s_addr) >> 24 == 127;
    return out;
  }
  in6_addr v6 = {};
  if (::inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::nullopt;
  out.is_ipv6 = true;
  out.is_loopback = is_loopback(v6);
  return out;
}

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;
};

SocketAddress socket_address_of(const Address& address) {
  SocketAddress out;
  if (address.is_ipv6) {
    sockaddr_in6 in = {};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(address.port);
    ::inet_pton(AF_INET6, address.host.c_str(), &in.sin6_addr);
    std::memcpy(&out.storage, &in, out.size = sizeof(in));
  } else {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    ::inet_pton(AF_INET, address.host.c_str(), &in.sin_addr);
    std::memcpy(&out.storage, &in, out.size = sizeof(in));
  }
  return out;
}

uint16_t port_of(int socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &size);
  sockaddr_in in = {};  // the port is at the same place in sockaddr_in6
  std::memcpy(&in, &storage, sizeof(in));
  return ntohs(in.sin_port);
}

// The host of "HOST:PORT" or "[HOST]:PORT", without what is around it; the port may be absent.
std::string_view host_of(std::string_view text) {
  const size_t bracket = text.find(']');
  if (text.starts_with('[')) return bracket == text.npos ? "" : text.substr(1, bracket - 1);
  return text.substr(0, text.rfind(':'));
}

}  // namespace

std::string Address::url() const {
  return is_ipv6 ? fmt::format("http://[{}]:{}/", host, port) : fmt::format("http://{}:{}/", host, port);
}

Result<Address> parse_address(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto port = parse_port(text.substr(colon + 1));  // npos + 1 is 0
  const auto refused = fail(fmt::format("--listen takes ADDRESS:PORT or PORT, not `{}`", text), 0, std::string(kHint));
  if (!port) return refused;
  std::string_view host = colon == text.npos ? "" : text.substr(0, colon);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (host.empty() && !has_brackets) host = "127.0.0.1";
  if (host == "localhost") host = "127.0.0.1";
  auto out = parse_host(std::string(host));
  if (!out || out->is_ipv6 != has_brackets) return refused;
  out->port = *port;
  return std::move(*out);
}

Result<OwnedFd> listen_at(Address& address) {
  const std::string what = fmt::format("cannot listen at {}", address.url());
  OwnedFd socket(::socket(address.is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno(what, errno);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const SocketAddress at = socket_address_of(address);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.storage), at.size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return fail_errno(what, errno, errno == EADDRINUSE ? "--listen 0 takes a free port, and shows it" : "");
  address.port = port_of(socket.get());
  return socket;
}

bool is_loopback_name(std::string_view host) {
  const std::string name = to_lower(host_of(host));
  if (name == "localhost") return true;
  const auto address = parse_host(name);
  return address && address->is_loopback;
}

}  // namespace espy::serve
