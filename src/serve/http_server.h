// HttpServer: answers requests from memory, in the thread of the caller, without waiting.
//
// In: a listening socket, and a function that answers a request. Out: responses, and streams of server-sent events.
// It never opens a file. Clients that are slow, idle or too many are dropped: see the limits in http_server.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "serve/http_request.h"

namespace espy::serve {

using Bytes = std::shared_ptr<const std::string>;  // shared by all who get them

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string headers = {};  // more of them, each with its CRLF
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

  // Readable when `run` has something to do: an epoll(7) instance.
  int fd() const { return epoll_.get(); }
  // Reads, answers and writes what is ready. Calls `on_tick` ten times a second while there are streams.
  void run();
  void on_tick(std::function<void()> call) { on_tick_ = std::move(call); }

  // The streams that have taken all that was sent to them.
  std::vector<StreamId> ready_streams() const;
  size_t stream_count() const;
  bool is_stream(StreamId id) const;  // false once it is closed
  bool has_room_for_stream() const;
  // Requires a stream of `ready_streams`. May drop it.
  void send(StreamId stream, Bytes bytes);
  uint64_t dropped_streams() const { return dropped_streams_; }  // that did not take what was sent to them

  void close_all();

 private:
  enum class State : uint8_t {
    kReading,  // a request, or waiting for one
    kWriting,  // a response
    kStream,
    kClosing,  // has sent the last response; discards what the client sends until it closes
  };
  struct Connection {
    OwnedFd fd;
    uint64_t id = 0;
    State state = State::kReading;
    std::string in;
    std::vector<Bytes> out;
    size_t sent_bytes = 0;      // of out.front()
    uint64_t since_ns = 0;      // when the state began, or when a byte was last taken while writing
    bool closes_after = false;  // the response
    uint32_t watched = 0;       // what epoll waits for
  };

  HttpServer(OwnedFd epoll, OwnedFd listener, OwnedFd timer, Answer answer);
  Status watch(int fd, uint32_t events, int operation);
  void accept_all();
  void pause_listening(bool is_paused);
  bool make_room();
  void handle(int fd, uint32_t events);
  // These return false if the connection is to be dropped.
  bool read(Connection& c);
  bool serve_requests(Connection& c);
  bool write(Connection& c);
  void respond(Connection& c, const HttpResponse& response, bool has_body);
  void refuse(Connection& c, int status);
  void update_watch(Connection& c);
  void enter(Connection& c, State state);
  void drop(int fd);
  void tick();
  void drop_expired();
  void set_timer();

  OwnedFd epoll_;
  OwnedFd listener_;
  OwnedFd timer_;
  Answer answer_;
  std::function<void()> on_tick_ = [] {};
  std::map<int, Connection> connections_;  // by descriptor
  uint64_t last_id_ = 0;
  uint64_t dropped_streams_ = 0;
  int timer_ms_ = 0;
  bool is_paused_ = false;  // the listener is not watched
};

}  // namespace espy::serve
