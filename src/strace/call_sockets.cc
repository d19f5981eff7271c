// Kinds of arguments of kinds.def: waiting for descriptors, and sockets.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "base/byte_reader.h"
#include "strace/call_decoder.h"
#include "strace/capture_script.h"

namespace espy::strace {

// ---- Waiting for files

void Decoder::show_pollfds() {
  const uint64_t count = length() & kLow32Bits, shown = std::min<uint64_t>(count, kMostElements);
  if (value() == 0 || count == 0) return value() == 0 ? put("NULL") : put("[]");
  const auto found = find(value(), shown * sizeof(pollfd), true);
  if (!found) return;
  const std::string fds(*found);
  put("[");
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) next();
    const auto fd = static_cast<int32_t>(load_le(fds, i * sizeof(pollfd), 4));
    *out_ += fmt::format("{{fd={}", fd);
    if (fd >= 0) {
      put(", events=");
      flags("poll", load_le(fds, i * sizeof(pollfd) + 4, 2));
    }
    put("}");
  }
  put(shown < count ? ", ...]" : "]");
}

// What follows the result of poll().
void Decoder::poll_results() {
  decimal(state_->result);
  if (state_->result == 0) return put(" (Timeout)");
  const uint64_t shown = std::min<uint64_t>(state_->arguments[1] & kLow32Bits, kMostElements);
  const auto found = state_->memory.bytes(state_->arguments[0], shown * sizeof(pollfd));
  if (!found) return;
  const std::string fds(*found);
  put(" ([");
  bool is_first = true;
  for (uint64_t i = 0; (i + 1) * sizeof(pollfd) <= fds.size(); ++i) {
    const uint64_t events = load_le(fds, i * sizeof(pollfd) + 6, 2);
    const auto fd = static_cast<int32_t>(load_le(fds, i * sizeof(pollfd), 4));
    if (events == 0 || fd < 0) continue;
    if (!is_first) next();
    is_first = false;
    *out_ += fmt::format("{{fd={}, revents=", fd);
    flags("poll", events);
    put("}");
  }
  put("]");
  int64_t left[2] = {};
  const auto rest = state_->memory.bytes(state_->arguments[2], sizeof(left));
  if (state_->call->name == "ppoll" && state_->arguments[2] != 0 && rest && rest->size() == sizeof(left)) {
    std::memcpy(left, rest->data(), sizeof(left));
    put(", left ");
    time_of(left[0], left[1], "tv_nsec");
  }
  put(")");
}

// Returns whether there is a set.
bool Decoder::set_of(size_t index, bool is_at_entry) {
  constexpr uint64_t kMostShown = 1024;
  const uint64_t count = std::min<uint64_t>(state_->arguments[0] & kLow32Bits, kMostShown);
  const uint64_t size_bytes = (count + 63) / 64 * 8;
  const auto found = find(state_->arguments[index], size_bytes, is_at_entry);
  if (!found) return false;
  const std::string set(*found);
  put("[");
  bool is_first = true;
  for (uint64_t fd = 0; fd < count; ++fd) {
    if (!(static_cast<unsigned char>(set[fd / 8]) >> fd % 8 & 1)) continue;
    if (!is_first) put(" ");
    is_first = false;
    unsigned_decimal(fd);
  }
  put("]");
  return true;
}

void Decoder::select_sets(bool) {
  const std::string_view fraction = is_named("select") ? "tv_usec" : "tv_nsec";
  if (state_->result == 0) return put(" (Timeout)");
  constexpr std::string_view kNames[] = {"", "in ", "out ", "except "};
  std::string& out = *out_;
  std::string all;
  for (size_t index = 1; index <= 3; ++index) {
    if (state_->arguments[index] == 0) continue;
    std::string one;
    out_ = &one;
    const bool is_there = set_of(index, false);
    out_ = &out;
    if (is_there && one != "[]") all += fmt::format("{}{}{}", all.empty() ? "" : ", ", kNames[index], one);
  }
  int64_t left[2] = {};
  const auto rest = state_->memory.bytes(state_->arguments[4], sizeof(left));
  if (state_->arguments[4] != 0 && rest && rest->size() == sizeof(left)) {
    std::memcpy(left, rest->data(), sizeof(left));
    all += fmt::format("{}left {{tv_sec={}, {}={}}}", all.empty() ? "" : ", ", left[0], fraction, left[1]);
  }
  if (!all.empty()) out += fmt::format(" ({})", all);
}

void Decoder::show_select() {
  decimal(as_int(value(0)));
  for (size_t index = 1; index <= 3; ++index) {
    next();
    set_of(index, true);
  }
  next();
  int64_t parts[2] = {};
  if (fetch(value(4), parts, true)) time_of(parts[0], parts[1], is_named("select") ? "tv_usec" : "tv_nsec");
  if (is_named("select")) return;
  next();
  pointer(value(5));
}

void Decoder::show_epoll_event() {
  epoll_event event = {};
  if (!fetch(value(), event)) return;
  put("{events=");
  flags("epoll", event.events);
  const uint64_t data =
      load_le(std::string_view(reinterpret_cast<const char*>(&event), sizeof(event)), sizeof(event) - 8);
  *out_ += fmt::format(", data={{u32={}, u64={}}}}}", data & kLow32Bits, data);
}

void Decoder::show_epoll_events() {
  const uint64_t shown = std::min<uint64_t>(length(), kMostElements);
  if (shown == 0) return put("[]");
  const auto found = find(value(), shown * sizeof(epoll_event));
  if (!found) return;
  const std::string events(*found);
  put("[");
  for (uint64_t i = 0; i < shown; ++i) {
    if (i > 0) next();
    put("{events=");
    flags("epoll", load_le(events, i * sizeof(epoll_event), 4));
    const uint64_t data = load_le(events, (i + 1) * sizeof(epoll_event) - 8);
    *out_ += fmt::format(", data={{u32={}, u64={}}}}}", data & kLow32Bits, data);
  }
  put(shown < length() ? ", ...]" : "]");
}

// ---- Sockets

void Decoder::socket_type(uint64_t type) {
  constexpr uint64_t kTypeBits = 0xf;
  one_of("sock", type & kTypeBits);
  uint64_t rest = type & ~kTypeBits;
  flags_in(table_.set("sock_type"), rest, false);
  if (rest != 0) *out_ += fmt::format("|{:#x}", rest);
}

void Decoder::socket_protocol(uint64_t domain, uint64_t protocol) {
  if (domain == AF_INET || domain == AF_INET6) return one_of("protocol_inet", protocol);
  if (domain == AF_NETLINK) return one_of("protocol_netlink", protocol);
  unsigned_decimal(protocol);
}

void Decoder::show_socket() {
  const uint64_t domain = value(0) & kLow32Bits;
  one_of("domain", domain);
  next();
  socket_type(value(1) & kLow32Bits);
  next();
  socket_protocol(domain, value(2) & kLow32Bits);
}

void Decoder::show_socketpair() {
  show_socket();
  next();
  int32_t fds[2] = {};
  if (has_failed()) return pointer(value(3));
  if (fetch(value(3), fds)) *out_ += fmt::format("[{}, {}]", fds[0], fds[1]);
}

void Decoder::socket_address(std::string_view bytes) {
  if (bytes.size() < 2) return quoted(bytes, false);
  const uint64_t family = load_le(bytes, 0, 2);
  put("{sa_family=");
  one_of("domain", family);
  const auto port = [&](size_t at) { return load_le(bytes, at, 1) << 8 | load_le(bytes, at + 1, 1); };
  char text[INET6_ADDRSTRLEN] = {};
  if (family == AF_UNIX && bytes.size() > 2) {
    const std::string_view path = bytes.substr(2);
    const bool is_abstract = path[0] == '\0' && path.size() > 1;
    put(is_abstract ? ", sun_path=@" : ", sun_path=");
    quoted(is_abstract ? path.substr(1) : path.substr(0, path.find('\0')), false);
  } else if (family == AF_INET && bytes.size() >= sizeof(sockaddr_in)) {
    ::inet_ntop(AF_INET, bytes.data() + 4, text, sizeof(text));
    *out_ += fmt::format(", sin_port=htons({}), sin_addr=inet_addr(\"{}\")", port(2), text);
  } else if (family == AF_INET6 && bytes.size() >= sizeof(sockaddr_in6)) {
    ::inet_ntop(AF_INET6, bytes.data() + 8, text, sizeof(text));
    *out_ += fmt::format(
        ", sin6_port=htons({}), sin6_flowinfo=htonl({}), inet_pton(AF_INET6, \"{}\", &sin6_addr), sin6_scope_id={}",
        port(2), ntohl(static_cast<uint32_t>(load_le(bytes, 4, 4))), text, load_le(bytes, 24, 4));
  } else if (family == AF_NETLINK && bytes.size() >= 12) {
    *out_ += fmt::format(", nl_pid={}, nl_groups={:08x}", load_le(bytes, 4, 4), load_le(bytes, 8, 4));
  } else if (bytes.size() > 2) {
    put(", sa_data=");
    quoted(bytes.substr(2), false);
  }
  put("}");
}

void Decoder::show_sockaddr() {
  if (value() == 0) return put("NULL");
  constexpr uint64_t kMost = 128;
  uint64_t size_bytes = length() & kLow32Bits;
  if (argument().is_filled) {
    const auto before = state_->memory.bytes(length(), 4, true), after = state_->memory.bytes(length(), 4);
    if (!before || !after || before->size() < 4 || after->size() < 4) return not_there(value());
    size_bytes = std::min(load_le(*before, 0, 4), load_le(*after, 0, 4));
  }
  if (size_bytes == 0) return pointer(value());
  const auto found = find(value(), std::min(size_bytes, kMost));
  if (found) socket_address(std::string(*found));
}

void Decoder::control_messages(std::string_view bytes) {
  put("[");
  bool is_first = true;
  for (size_t at = 0; at + sizeof(cmsghdr) <= bytes.size();) {
    const uint64_t size_bytes = load_le(bytes, at);
    if (size_bytes < sizeof(cmsghdr)) break;
    if (!is_first) next();
    is_first = false;
    const uint64_t level = load_le(bytes, at + 8, 4), type = load_le(bytes, at + 12, 4);
    *out_ += fmt::format("{{cmsg_len={}, cmsg_level=", size_bytes);
    one_of("so_level", level);
    const std::string_view data = bytes.substr(at + sizeof(cmsghdr), size_bytes - sizeof(cmsghdr));
    if (level == SOL_SOCKET && type == SCM_RIGHTS) {
      put(", cmsg_type=SCM_RIGHTS, cmsg_data=[");
      for (size_t i = 0; i + 4 <= data.size(); i += 4)
        *out_ += fmt::format("{}{}", i > 0 ? ", " : "", static_cast<int32_t>(load_le(data, i, 4)));
      put("]}");
    } else if (level == SOL_SOCKET && type == SCM_CREDENTIALS && data.size() >= 12) {
      *out_ += fmt::format(", cmsg_type=SCM_CREDENTIALS, cmsg_data={{pid={}, uid={}, gid={}}}}}", load_le(data, 0, 4),
                           load_le(data, 4, 4), load_le(data, 8, 4));
    } else {
      *out_ += fmt::format(", cmsg_type={:#x}, cmsg_data=", type);
      quoted(data.substr(0, style_.text_bytes), data.size() > style_.text_bytes);
      put("}");
    }
    at += (size_bytes + 7) & ~uint64_t{7};
  }
  put("]");
}

void Decoder::show_msghdr() {
  msghdr header = {};
  if (!fetch(value(), header)) return;
  put("{msg_name=");
  const auto address = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  const bool is_filled = argument().is_filled;
  if (header.msg_name == nullptr || header.msg_namelen == 0) {
    pointer(address(header.msg_name));
  } else if (const auto name = find(address(header.msg_name), std::min<uint64_t>(header.msg_namelen, 128))) {
    socket_address(std::string(*name));
  }
  *out_ += fmt::format(", msg_namelen={}, msg_iov=", header.msg_namelen);
  const auto filled = static_cast<uint64_t>(std::max<int64_t>(state_->result, 0));
  vector_at(address(header.msg_iov), header.msg_iovlen, is_filled ? filled : UINT64_MAX);
  *out_ += fmt::format(", msg_iovlen={}", header.msg_iovlen);
  if (header.msg_controllen > 0 && header.msg_control != nullptr) {
    put(", msg_control=");
    const auto control = find(address(header.msg_control), std::min<uint64_t>(header.msg_controllen, 256));
    if (control) control_messages(std::string(*control));
  }
  *out_ += fmt::format(", msg_controllen={}, msg_flags=", header.msg_controllen);
  flags("msg", static_cast<uint32_t>(header.msg_flags));
  put("}");
}

void Decoder::socket_option(bool is_read) {
  const uint64_t level = value(1) & kLow32Bits, option = value(2) & kLow32Bits;
  one_of("so_level", level);
  next();
  const std::string_view set = level == SOL_SOCKET     ? "so"
                               : level == IPPROTO_TCP  ? "so_tcp"
                               : level == IPPROTO_IP   ? "so_ip"
                               : level == IPPROTO_IPV6 ? "so_ipv6"
                                                       : "";
  if (set.empty())
    decimal(as_int(option));
  else
    one_of(set, option);
  next();
  const std::string_view name = set.empty() ? "" : table_.set(set).name_of(option);
  uint64_t size_bytes = value(4) & kLow32Bits;
  if (is_read) {
    const auto length = state_->memory.bytes(value(4), 4);
    size_bytes = length && length->size() == 4 ? load_le(*length, 0, 4) : 0;
  }
  if (is_read && has_failed()) return pointer(value(3));
  if (value(3) == 0) return put("NULL");
  const auto bytes = find(value(3), std::min<uint64_t>(size_bytes, 32));
  if (!bytes) return;
  const std::string copy(*bytes);
  if (name == "SO_LINGER" && copy.size() >= 8) {
    *out_ += fmt::format("{{l_onoff={}, l_linger={}}}", load_le(copy, 0, 4), load_le(copy, 4, 4));
  } else if (name.starts_with("SO_RCVTIMEO") || name.starts_with("SO_SNDTIMEO")) {
    if (copy.size() >= 16)
      time_of(static_cast<int64_t>(load_le(copy, 0)), static_cast<int64_t>(load_le(copy, 8)), "tv_usec");
  } else if (name == "SO_PEERCRED" && copy.size() >= 12) {
    *out_ += fmt::format("{{pid={}, uid={}, gid={}}}", load_le(copy, 0, 4), load_le(copy, 4, 4), load_le(copy, 8, 4));
  } else if (name == "SO_TYPE" && copy.size() == 4) {
    put("[");
    one_of("sock", load_le(copy, 0, 4));
    put("]");
  } else if (copy.size() == 4) {
    *out_ += fmt::format("[{}]", static_cast<int32_t>(load_le(copy, 0, 4)));
  } else {
    quoted(copy, size_bytes > copy.size());
  }
}

void Decoder::show_setsockopt() {
  socket_option(false);
  next();
  decimal(as_int(value(4)));
}

void Decoder::show_getsockopt() {
  socket_option(true);
  next();
  index_ = 4;
  int32_t before = 0, after = 0;
  if (!fetch(value(4), before, true)) return;
  if (!has_failed() && fetch(value(4), after) && after != before)
    *out_ += fmt::format("[{} => {}]", before, after);
  else
    *out_ += fmt::format("[{}]", before);
}

}  // namespace espy::strace
