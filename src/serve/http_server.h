// HttpServer: answers requests from memory, in the thread of the caller, without waiting. The evhttp of libevent reads
// them and writes the responses. This file has the limits and the streams.
//
// In: a listening socket, and a function that answers a request. Out: responses, and streams of server-sent events.
// It never opens a file. Clients that are slow, idle or too many are dropped: see the limits in http_server.cc.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/result.h"

struct bufferevent;
struct evconnlistener;
struct event;
struct event_base;
struct evhttp;
struct evhttp_request;

namespace espy::serve {

// ---- Where a server listens, and which names of it a browser may use

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

// ---- Requests for the handlers: GET and HEAD without a body

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

// ---- The server

using Bytes = std::shared_ptr<const std::string>;  // shared by all who get them

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers = {};  // more of them
  Bytes body = {};
  bool is_stream = false;  // the connection stays open for `send`; without a body
};

class HttpServer {
 public:
  using Answer = std::function<HttpResponse(const HttpRequest&)>;
  using StreamId = uint64_t;

  static Result<std::unique_ptr<HttpServer>> create(OwnedFd listener, Answer answer);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  // Readable when `run` has something to do: an epoll(7) instance.
  int fd() const { return epoll_; }
  // Reads, answers and writes ready requests. Calls `on_tick` ten times a second while there are streams. Requires that
  // SIGPIPE is ignored.
  void run();
  void on_tick(std::function<void()> call) { on_tick_ = std::move(call); }

  // The streams that have taken all that was sent to them.
  std::vector<StreamId> ready_streams() const;
  size_t stream_count() const;
  bool is_stream(StreamId id) const;  // false once it is closed
  bool has_room_for_stream() const;
  // Sends it at the next `run`. Requires a stream of `ready_streams`.
  void send(StreamId stream, const Bytes& bytes);
  // Ends all streams after their data.
  void end_streams();
  uint64_t dropped_streams() const { return dropped_streams_; }  // that did not take their data

  void close_all();

 private:
  struct Connection {
    uint64_t id = 0;
    evhttp_request* stream = nullptr;  // whose response is a stream
    uint64_t since_ns = 0;             // when it began to wait for a request, the request began, or a byte was taken
    bool has_begun = false;            // a request that was not answered yet
  };
  struct Free {
    void operator()(event_base* base) const;
    void operator()(event* event) const;
    void operator()(evhttp* http) const;
  };

  HttpServer(OwnedFd timer, OwnedFd again, Answer answer);
  Status start(OwnedFd listener);
  // Calls a part of the work from libevent, whose functions no exception may leave.
  template <class Part>
  void call(Part&& part);
  void add_connection(bufferevent* buffers);
  void forget_closed();
  void make_room();
  void handle(evhttp_request* request);
  void respond(evhttp_request* request, const HttpResponse& response);
  void tick();
  void drop_expired();
  void set_timer();

  OwnedFd timer_;
  OwnedFd again_;  // readable if work was left for the next `run`
  Answer answer_;
  std::function<void()> on_tick_ = [] {};
  std::unique_ptr<event_base, Free> base_;
  std::unique_ptr<event, Free> timer_event_, again_event_;
  std::unique_ptr<evhttp, Free> http_;
  evconnlistener* listener_ = nullptr;              // http_ owns it
  int epoll_ = -1;                                  // base_ owns it
  std::map<bufferevent*, Connection> connections_;  // with a reference to each
  uint64_t last_id_ = 0;
  uint64_t dropped_streams_ = 0;
  int requests_in_run_ = 0;
  int timer_ms_ = 0;
  bool is_paused_ = false;  // accepts no connections
};

}  // namespace espy::serve
