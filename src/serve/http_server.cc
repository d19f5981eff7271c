// libevent waits for its sockets with an epoll(7) instance of its own, which is one descriptor of the caller's loop:
// `run` lets libevent handle what is ready, and returns. Timers of libevent would not make that descriptor readable, so
// time is a timerfd among its events.
//
// evhttp has no limits of connections and of time that fit, and does not tell when it closes a connection. So this
// makes the buffers of each connection itself, keeps a reference to them, and sees by them what a client takes and
// sends, and that evhttp has let go of them.
#include "serve/http_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/limits.h"
#include "base/strings.h"

// evhttp is a client as well, which resolves names. A server does not, so the resolver of the C library is left out, by
// the linker's --wrap (CMakeLists.txt). The address of a client is asked for, but not used; evhttp ends the process if
// it gets none.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {
int __wrap_getaddrinfo(const char*, const char*, const addrinfo*, addrinfo**) { return EAI_FAIL; }
void __wrap_freeaddrinfo(addrinfo*) {}
const char* __wrap_gai_strerror(int) { return ""; }
servent* __wrap_getservbyname(const char*, const char*) { return nullptr; }
protoent* __wrap_getprotobynumber(int) { return nullptr; }
int __wrap_getnameinfo(const sockaddr*, socklen_t, char* host, socklen_t host_size, char* service,
                       socklen_t service_size, int) {
  if (host_size > 0) *host = '\0';
  if (service_size > 0) *service = '\0';
  return 0;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

namespace espy::serve {

namespace {

// ---- Addresses

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

// ---- The server

constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxStreams = 48;  // the others are left to scrapers
constexpr size_t kMaxHeadBytes = 8192;
constexpr size_t kMaxUnreadBytes = 2 * kMaxHeadBytes;  // that a client sends before its request is answered
constexpr int kSendBufferBytes = 256 << 10;
constexpr int kTickMs = 100;
constexpr int kIdleTickMs = 1000;
constexpr int kRequestsPerRun = 64;

constexpr uint64_t kRequestNs = 10 * kNsPerSecond;  // for a whole request, from its first byte
constexpr uint64_t kIdleNs = 120 * kNsPerSecond;    // between requests
constexpr uint64_t kStallNs = 5 * kNsPerSecond;     // without taking a byte

// `handle` refuses all but GET and HEAD, with a status that says why; evhttp itself refuses what is none of these by
// 501. It gives unknown methods a number that its enumeration does not have.
constexpr uint16_t kKnownMethods = EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
                                   EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_CONNECT |
                                   EVHTTP_REQ_PATCH;

constexpr const char* kCannotServe = "cannot wait for requests";

size_t unsent_bytes(bufferevent* buffers) { return evbuffer_get_length(bufferevent_get_output(buffers)); }

// evhttp notices it as an end of the connection, and frees it.
void close_connection(bufferevent* buffers) { ::shutdown(bufferevent_getfd(buffers), SHUT_RDWR); }

// Whether evhttp has freed the connection, except for our reference.
bool is_closed(bufferevent* buffers) {
  bufferevent_event_cb on_event = nullptr;
  bufferevent_getcb(buffers, nullptr, nullptr, &on_event, nullptr);
  return on_event == nullptr;
}

// libevent's epoll(7) instance, which it does not tell: the descriptor by which the way to wait for `listener` can be
// set (to what it is). -1 if there is none.
int epoll_that_waits_for(int listener) {
  const int end = ::getdtablesize();
  for (int fd = 0; fd < end; ++fd) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = listener;
    if (::epoll_ctl(fd, EPOLL_CTL_MOD, listener, &event) == 0) return fd;
  }
  return -1;
}

event_base* make_base() {
  event_config* config = event_config_new();
  if (config == nullptr) return nullptr;
  event_config_avoid_method(config, "poll");
  event_config_avoid_method(config, "select");
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
  event_base* out = event_base_new_with_config(config);
  event_config_free(config);
  return out;
}

// Adds bytes without a copy of them.
void add_shared(evbuffer* to, const Bytes& bytes) {
  auto kept = std::make_unique<Bytes>(bytes);
  const auto let_go = [](const void*, size_t, void* argument) {
    const std::unique_ptr<Bytes> last(static_cast<Bytes*>(argument));
  };
  if (evbuffer_add_reference(to, bytes->data(), bytes->size(), let_go, kept.get()) == 0) (void)kept.release();
}

// Reads what an answer depends on. Returns the status of a refusal; 0 if there is none.
int read_request(evhttp_request* request, HttpRequest& out) {
  const std::string_view target = evhttp_request_get_uri(request);
  const size_t mark = target.find('?');
  out.path = target.substr(0, mark);
  if (mark != target.npos) out.query = target.substr(mark + 1);
  size_t hosts = 0;
  bool has_body = false;
  const evkeyvalq* headers = evhttp_request_get_input_headers(request);
  for (const evkeyval* each = headers->tqh_first; each != nullptr; each = each->next.tqe_next) {
    const std::string name = to_lower(each->key);
    const std::string_view value = each->value;
    if (name == "host") {
      out.host = value;
      ++hosts;
    } else if (name == "accept") {
      out.accept = value;
    } else if (name == "authorization") {
      out.authorization = value;
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      has_body = true;
    }
  }
  if (!target.starts_with('/') || hosts != 1) return 400;
  if (has_body) return 413;
  const evhttp_cmd_type method = evhttp_request_get_command(request);
  return method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD ? 0 : 405;
}

HttpResponse refusal(int status) {
  HttpResponse out{.status = status, .headers = {{"Connection", "close"}}};
  if (status == 405) out.headers.emplace_back("Allow", "GET, HEAD");
  return out;
}

}  // namespace

// ---- Addresses

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

// ---- The server

void HttpServer::Free::operator()(event_base* base) const { event_base_free(base); }
void HttpServer::Free::operator()(event* event) const { event_free(event); }
void HttpServer::Free::operator()(evhttp* http) const { evhttp_free(http); }

Result<std::unique_ptr<HttpServer>> HttpServer::create(OwnedFd listener, Answer answer) {
  OwnedFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  OwnedFd again(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!timer.valid() || !again.valid()) return fail_errno(kCannotServe, errno);
  std::unique_ptr<HttpServer> out(new HttpServer(std::move(timer), std::move(again), std::move(answer)));
  TRY_STATUS(out->start(std::move(listener)));
  return out;
}

HttpServer::HttpServer(OwnedFd timer, OwnedFd again, Answer answer)
    : timer_(std::move(timer)), again_(std::move(again)), answer_(std::move(answer)) {}

HttpServer::~HttpServer() {
  forget_closed();
  http_.reset();
  for (const auto& [buffers, connection] : connections_) bufferevent_decref(buffers);
}

// Connections inherit the options of the listener.
Status HttpServer::start(OwnedFd listener) {
  const int yes = 1, socket = listener.get();
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
  event_set_log_callback([](int, const char*) {});
  base_.reset(make_base());
  if (base_ == nullptr) return fail(kCannotServe);
  const auto add_event = [&](const OwnedFd& fd, event_callback_fn on_ready) {
    event* out = event_new(base_.get(), fd.get(), EV_READ | EV_PERSIST, on_ready, this);
    if (out != nullptr) event_add(out, nullptr);
    return out;
  };
  timer_event_.reset(add_event(timer_, [](int, short, void* server) { static_cast<HttpServer*>(server)->tick(); }));
  again_event_.reset(add_event(again_, [](int fd, short, void*) {
    eventfd_t value = 0;
    (void)::eventfd_read(fd, &value);
  }));
  http_.reset(evhttp_new(base_.get()));
  if (timer_event_ == nullptr || again_event_ == nullptr || http_ == nullptr) return fail(kCannotServe);
  evhttp_set_max_headers_size(http_.get(), kMaxHeadBytes);
  evhttp_set_max_body_size(http_.get(), 0);
  evhttp_set_allowed_methods(http_.get(), kKnownMethods);
  const auto on_request = [](evhttp_request* request, void* server) {
    static_cast<HttpServer*>(server)->handle(request);
  };
  evhttp_set_gencb(http_.get(), on_request, this);
  const auto make_buffers = [](event_base* base, void* server) {
    bufferevent* out = bufferevent_socket_new(base, -1, 0);
    if (out != nullptr) static_cast<HttpServer*>(server)->add_connection(out);
    return out;
  };
  evhttp_set_bevcb(http_.get(), make_buffers, this);
  evhttp_bound_socket* bound = evhttp_accept_socket_with_handle(http_.get(), socket);
  if (bound == nullptr) return fail(kCannotServe);
  (void)listener.release();
  listener_ = evhttp_bound_socket_get_listener(bound);
  // Without descriptors or memory, the listener would stay readable: it accepts again at the next tick.
  evconnlistener_set_error_cb(listener_, [](evconnlistener* failed, void*) {
    evconnlistener_disable(failed);
    event_base_loopbreak(evconnlistener_get_base(failed));
  });
  epoll_ = epoll_that_waits_for(socket);
  return epoll_ >= 0 ? Status() : fail(kCannotServe);
}

template <class Part>
void HttpServer::call(Part&& part) {
  const Status done = catch_out_of_memory([&]() -> Status {
    part();
    return {};
  });
  if (!done) close_all();
}

void HttpServer::run() {
  requests_in_run_ = 0;
  event_base_loop(base_.get(), EVLOOP_ONCE | EVLOOP_NONBLOCK);
  if (event_base_got_break(base_.get()) != 0 && requests_in_run_ < kRequestsPerRun) is_paused_ = true;
  forget_closed();
  if (!is_paused_ && connections_.size() < kMaxConnections) evconnlistener_enable(listener_);
  set_timer();
  // What is left in libevent's own queue does not make its epoll(7) instance readable.
  if (event_base_get_num_events(base_.get(), EVENT_BASE_COUNT_ACTIVE) > 0) (void)::eventfd_write(again_.get(), 1);
}

// ---- Connections

// Called while evhttp accepts a connection, which becomes that of `buffers` afterwards.
void HttpServer::add_connection(bufferevent* buffers) {
  call([&] {
    forget_closed();
    Connection& connection = connections_[buffers];
    bufferevent_incref(buffers);
    connection.id = ++last_id_;
    connection.since_ns = monotonic_ns();
    bufferevent_setwatermark(buffers, EV_READ, 0, kMaxUnreadBytes);
    bufferevent_set_max_single_write(buffers, kSendBufferBytes);
    const auto on_input = [](evbuffer*, const evbuffer_cb_info* change, void* argument) {
      auto* c = static_cast<Connection*>(argument);
      if (change->n_added == 0 || c->has_begun) return;
      c->has_begun = true;
      c->since_ns = monotonic_ns();
    };
    const auto on_output = [](evbuffer*, const evbuffer_cb_info* change, void* argument) {
      auto* c = static_cast<Connection*>(argument);
      c->since_ns = monotonic_ns();
      if (change->orig_size + change->n_added == change->n_deleted) c->has_begun = false;
    };
    evbuffer_add_cb(bufferevent_get_input(buffers), on_input, &connection);
    evbuffer_add_cb(bufferevent_get_output(buffers), on_output, &connection);
    if (connections_.size() >= kMaxConnections) make_room();
  });
}

void HttpServer::forget_closed() {
  std::erase_if(connections_, [](const auto& each) {
    const auto& [buffers, c] = each;
    if (!is_closed(buffers)) return false;
    if (c.stream != nullptr) evhttp_send_reply_end(c.stream);  // frees it
    bufferevent_decref(buffers);
    return true;
  });
}

// Closes the connection that has waited for a request for longest, and accepts no other before one is closed.
void HttpServer::make_room() {
  evconnlistener_disable(listener_);
  bufferevent* oldest = nullptr;
  uint64_t since_ns = UINT64_MAX;
  for (const auto& [buffers, c] : connections_) {
    if (c.stream != nullptr || unsent_bytes(buffers) > 0 || c.since_ns >= since_ns) continue;
    oldest = buffers;
    since_ns = c.since_ns;
  }
  if (oldest != nullptr) close_connection(oldest);
}

void HttpServer::close_all() {
  for (const auto& [buffers, c] : connections_) close_connection(buffers);
}

// ---- Requests

void HttpServer::handle(evhttp_request* request) {
  if (++requests_in_run_ == kRequestsPerRun) event_base_loopbreak(base_.get());
  call([&] {
    HttpRequest read;
    const int refused = read_request(request, read);
    respond(request, refused != 0 ? refusal(refused) : answer_(read));
  });
}

void HttpServer::respond(evhttp_request* request, const HttpResponse& response) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", response.content_type.c_str());
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) evhttp_add_header(headers, name.c_str(), value.c_str());
  if (evhttp_request_get_command(request) == EVHTTP_REQ_HEAD) {
    const size_t size = response.body != nullptr ? response.body->size() : 0;
    if (!response.is_stream) evhttp_add_header(headers, "Content-Length", std::to_string(size).c_str());
    return evhttp_send_reply(request, response.status, nullptr, nullptr);
  }
  if (response.is_stream) {
    evhttp_send_reply_start(request, response.status, nullptr);
    connections_.at(evhttp_connection_get_bufferevent(evhttp_request_get_connection(request))).stream = request;
    return;
  }
  const std::unique_ptr<evbuffer, void (*)(evbuffer*)> body(evbuffer_new(), evbuffer_free);
  if (body != nullptr && response.body != nullptr) add_shared(body.get(), response.body);
  evhttp_send_reply(request, response.status, nullptr, body.get());
}

// ---- Streams

size_t HttpServer::stream_count() const {
  return static_cast<size_t>(
      std::ranges::count_if(connections_, [](const auto& each) { return each.second.stream != nullptr; }));
}

bool HttpServer::is_stream(StreamId id) const {
  return std::ranges::any_of(connections_,
                             [&](const auto& each) { return each.second.id == id && each.second.stream != nullptr; });
}

bool HttpServer::has_room_for_stream() const { return stream_count() < kMaxStreams; }

std::vector<HttpServer::StreamId> HttpServer::ready_streams() const {
  std::vector<StreamId> out;
  for (const auto& [buffers, c] : connections_)
    if (c.stream != nullptr && unsent_bytes(buffers) == 0) out.push_back(c.id);
  return out;
}

void HttpServer::send(StreamId stream, const Bytes& bytes) {
  const auto found = std::ranges::find_if(connections_, [&](const auto& each) { return each.second.id == stream; });
  const std::unique_ptr<evbuffer, void (*)(evbuffer*)> chunk(evbuffer_new(), evbuffer_free);
  if (found == connections_.end() || found->second.stream == nullptr || chunk == nullptr) return;
  add_shared(chunk.get(), bytes);
  evhttp_send_reply_chunk(found->second.stream, chunk.get());
}

void HttpServer::end_streams() {
  for (auto& [buffers, c] : connections_)
    if (evhttp_request* stream = std::exchange(c.stream, nullptr)) evhttp_send_reply_end(stream);
}

// ---- Time

void HttpServer::set_timer() {
  const int wanted_ms = stream_count() > 0 ? kTickMs : !connections_.empty() || is_paused_ ? kIdleTickMs : 0;
  if (wanted_ms == timer_ms_) return;
  timer_ms_ = wanted_ms;
  itimerspec spec = {};
  spec.it_value.tv_sec = spec.it_interval.tv_sec = wanted_ms / 1000;
  spec.it_value.tv_nsec = spec.it_interval.tv_nsec = static_cast<long>(wanted_ms % 1000) * 1'000'000;
  ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
}

void HttpServer::tick() {
  uint64_t expirations = 0;
  if (::read(timer_.get(), &expirations, sizeof(expirations)) != sizeof(expirations)) return;
  is_paused_ = false;
  call([&] {
    drop_expired();
    forget_closed();
    if (stream_count() > 0) on_tick_();
  });
}

void HttpServer::drop_expired() {
  const uint64_t now_ns = monotonic_ns();
  for (const auto& [buffers, c] : connections_) {
    const bool is_writing = unsent_bytes(buffers) > 0;
    if (c.stream != nullptr && !is_writing) continue;
    const bool is_in_request = c.has_begun || evbuffer_get_length(bufferevent_get_input(buffers)) > 0;
    if (now_ns - c.since_ns <= (is_writing ? kStallNs : is_in_request ? kRequestNs : kIdleNs)) continue;
    dropped_streams_ += c.stream != nullptr ? 1 : 0;
    close_connection(buffers);
  }
}

}  // namespace espy::serve
