#include "serve/http_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/end_request.h"

namespace espy::serve {

namespace {

constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxStreams = 48;  // the others are left to scrapers
constexpr int kSendBufferBytes = 256 << 10;
constexpr int kTickMs = 100;
constexpr int kIdleTickMs = 1000;
constexpr int kEventsPerRun = 64;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kRequestNs = 10 * kSecond;  // for a whole request, from its first byte
constexpr uint64_t kIdleNs = 120 * kSecond;    // between requests
constexpr uint64_t kStallNs = 5 * kSecond;     // without taking a byte
constexpr uint64_t kClosingNs = kSecond;

constexpr std::pair<int, std::string_view> kReasons[] = {{200, "OK"},
                                                         {400, "Bad Request"},
                                                         {401, "Unauthorized"},
                                                         {403, "Forbidden"},
                                                         {404, "Not Found"},
                                                         {405, "Method Not Allowed"},
                                                         {413, "Content Too Large"},
                                                         {431, "Request Header Fields Too Large"},
                                                         {503, "Service Unavailable"}};

std::string_view reason_of(int status) {
  const auto* row = std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  return row != std::end(kReasons) ? row->second : "Error";
}

std::string head_of(const HttpResponse& response, bool closes) {
  std::string out = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{}",
      response.status, reason_of(response.status), response.content_type, response.headers);
  if (!response.is_stream)
    out += fmt::format("Content-Length: {}\r\n", response.body != nullptr ? response.body->size() : 0);
  if (closes) out += "Connection: close\r\n";
  return out + "\r\n";
}

int status_of(RequestState state) {
  switch (state) {
    case RequestState::kTooLarge: return 431;
    case RequestState::kHasBody: return 413;
    default: return 400;
  }
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::create(OwnedFd listener, Answer answer) {
  constexpr const char* kCannotServe = "cannot wait for requests";
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return fail_errno(kCannotServe, errno);
  OwnedFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer.valid()) return fail_errno(kCannotServe, errno);
  std::unique_ptr<HttpServer> out(
      new HttpServer(std::move(epoll), std::move(listener), std::move(timer), std::move(answer)));
  TRY_STATUS(out->watch(out->listener_.get(), EPOLLIN, EPOLL_CTL_ADD));
  TRY_STATUS(out->watch(out->timer_.get(), EPOLLIN, EPOLL_CTL_ADD));
  return out;
}

HttpServer::HttpServer(OwnedFd epoll, OwnedFd listener, OwnedFd timer, Answer answer)
    : epoll_(std::move(epoll)), listener_(std::move(listener)), timer_(std::move(timer)), answer_(std::move(answer)) {}

Status HttpServer::watch(int fd, uint32_t events, int operation) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) == 0) return {};
  return fail_errno("cannot wait for requests", errno);
}

void HttpServer::run() {
  epoll_event events[kEventsPerRun];
  const int count = ::epoll_wait(epoll_.get(), events, kEventsPerRun, 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[i].data.fd;
    if (fd == listener_.get())
      accept_all();
    else if (fd == timer_.get())
      tick();
    else
      handle(fd, events[i].events);
  }
  set_timer();
}

// ---- Connections

void HttpServer::accept_all() {
  for (;;) {
    OwnedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      // Without descriptors or memory, the listener would stay readable: it is watched again at the next tick.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause_listening(true);
      return;
    }
    if (connections_.size() >= kMaxConnections && !make_room()) continue;  // closes it
    const int yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
    if (!watch(fd.get(), EPOLLIN, EPOLL_CTL_ADD)) continue;
    const int number = fd.get();
    Connection& c = connections_[number];
    c.fd = std::move(fd);
    c.id = ++last_id_;
    c.watched = EPOLLIN;
    enter(c, State::kReading);
  }
}

void HttpServer::pause_listening(bool is_paused) {
  if (is_paused_ == is_paused) return;
  is_paused_ = is_paused;
  (void)watch(listener_.get(), is_paused ? 0U : uint32_t{EPOLLIN}, EPOLL_CTL_MOD);
}

// Drops the connection that has waited for a request for longest. False if all are busy.
bool HttpServer::make_room() {
  const Connection* oldest = nullptr;
  for (const auto& [fd, c] : connections_)
    if (c.state == State::kReading && (oldest == nullptr || c.since_ns < oldest->since_ns)) oldest = &c;
  if (oldest == nullptr) return false;
  drop(oldest->fd.get());
  return true;
}

void HttpServer::drop(int fd) { connections_.erase(fd); }  // epoll forgets a descriptor that is closed

void HttpServer::close_all() {
  connections_.clear();
  set_timer();
}

void HttpServer::enter(Connection& c, State state) {
  c.state = state;
  c.since_ns = monotonic_ns();
}

void HttpServer::update_watch(Connection& c) {
  const uint32_t wanted =
      (c.state == State::kWriting ? 0U : uint32_t{EPOLLIN}) | (c.out.empty() ? 0U : uint32_t{EPOLLOUT});
  if (wanted == c.watched) return;
  c.watched = wanted;
  (void)watch(c.fd.get(), wanted, EPOLL_CTL_MOD);
}

void HttpServer::handle(int fd, uint32_t events) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& c = found->second;
  bool is_good = (events & EPOLLERR) == 0;
  if (is_good && (events & EPOLLOUT) != 0) is_good = write(c) && serve_requests(c);
  if (is_good && (events & (EPOLLIN | EPOLLHUP)) != 0) is_good = read(c);
  if (!is_good) return drop(fd);
  update_watch(c);
}

// ---- Requests

bool HttpServer::read(Connection& c) {
  char buffer[kMaxRequestBytes];
  const ssize_t count = ::recv(c.fd.get(), buffer, sizeof(buffer), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (c.state != State::kReading) return true;  // a stream takes no requests
  if (c.in.empty()) c.since_ns = monotonic_ns();
  c.in.append(buffer, static_cast<size_t>(count));
  return serve_requests(c);
}

// Answers the requests that are there, up to the first whose response cannot be sent at once.
bool HttpServer::serve_requests(Connection& c) {
  while (c.state == State::kReading && !c.in.empty()) {
    const ParsedRequest parsed = parse_request(c.in);
    if (parsed.state == RequestState::kIncomplete) return true;
    if (parsed.state != RequestState::kComplete) {
      refuse(c, status_of(parsed.state));
    } else if (parsed.request.method != "GET" && parsed.request.method != "HEAD") {
      refuse(c, 405);
    } else {
      c.closes_after = !parsed.request.keeps_alive;
      respond(c, answer_(parsed.request), parsed.request.method == "GET");
      c.in.erase(0, parsed.size_bytes);
    }
    if (!write(c)) return false;
  }
  return true;
}

void HttpServer::refuse(Connection& c, int status) {
  c.closes_after = true;
  c.in.clear();
  respond(c,
          {.status = status,
           .headers = status == 405 ? "Allow: GET, HEAD\r\n" : "",
           .body = std::make_shared<const std::string>(fmt::format("{}\n", reason_of(status)))},
          true);
}

void HttpServer::respond(Connection& c, const HttpResponse& response, bool has_body) {
  c.closes_after |= response.is_stream;
  c.out.push_back(std::make_shared<const std::string>(head_of(response, c.closes_after)));
  if (has_body && response.body != nullptr && !response.body->empty()) c.out.push_back(response.body);
  enter(c, response.is_stream && has_body ? State::kStream : State::kWriting);
}

bool HttpServer::write(Connection& c) {
  while (!c.out.empty()) {
    const std::string& bytes = *c.out.front();
    const ssize_t count = ::send(c.fd.get(), bytes.data() + c.sent_bytes, bytes.size() - c.sent_bytes, MSG_NOSIGNAL);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    c.since_ns = monotonic_ns();
    c.sent_bytes += static_cast<size_t>(count);
    if (c.sent_bytes < bytes.size()) continue;
    c.out.erase(c.out.begin());
    c.sent_bytes = 0;
  }
  if (c.state != State::kWriting) return true;
  if (!c.closes_after) {
    enter(c, State::kReading);
    return true;
  }
  // Closed with unread bytes of the client, the connection would be reset before the client has read the response.
  ::shutdown(c.fd.get(), SHUT_WR);
  enter(c, State::kClosing);
  return true;
}

// ---- Streams

size_t HttpServer::stream_count() const {
  return static_cast<size_t>(
      std::ranges::count_if(connections_, [](const auto& each) { return each.second.state == State::kStream; }));
}

bool HttpServer::is_stream(StreamId id) const {
  return std::ranges::any_of(
      connections_, [&](const auto& each) { return each.second.id == id && each.second.state == State::kStream; });
}

bool HttpServer::has_room_for_stream() const { return stream_count() < kMaxStreams; }

std::vector<HttpServer::StreamId> HttpServer::ready_streams() const {
  std::vector<StreamId> out;
  for (const auto& [fd, c] : connections_)
    if (c.state == State::kStream && c.out.empty()) out.push_back(c.id);
  return out;
}

void HttpServer::send(StreamId stream, Bytes bytes) {
  const auto found = std::ranges::find_if(connections_, [&](const auto& each) { return each.second.id == stream; });
  if (found == connections_.end()) return;
  Connection& c = found->second;
  c.since_ns = monotonic_ns();
  c.out.push_back(std::move(bytes));
  if (!write(c)) return drop(found->first);
  update_watch(c);
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
  pause_listening(false);
  drop_expired();
  if (stream_count() > 0) on_tick_();
}

void HttpServer::drop_expired() {
  const uint64_t now_ns = monotonic_ns();
  const auto limit_of = [](const Connection& c) {
    if (!c.out.empty()) return kStallNs;
    switch (c.state) {
      case State::kReading: return c.in.empty() ? kIdleNs : kRequestNs;
      case State::kClosing: return kClosingNs;
      default: return UINT64_MAX;
    }
  };
  std::erase_if(connections_, [&](const auto& each) {
    const Connection& c = each.second;
    const bool is_expired = now_ns - c.since_ns > limit_of(c);
    dropped_streams_ += is_expired && c.state == State::kStream ? 1 : 0;
    return is_expired;
  });
}

}  // namespace espy::serve
