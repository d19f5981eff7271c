// Requests to the server of --listen: the bytes of a client, in pieces, through the server's own sockets.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "../reader.h"
#include "serve/address.h"
#include "serve/exposition.h"
#include "serve/http_server.h"

namespace espy::fuzz {

namespace {

// Answers as the server of a run does, without the run.
serve::HttpResponse answer(const serve::HttpRequest& request) {
  use(request.path);
  use(serve::query_parameter(request.query, "token"));
  if (!serve::is_loopback_name(request.host)) return {.status = 403};
  if (request.path == "/events") return {.content_type = "text/event-stream", .is_stream = true};
  return {.content_type = std::string(serve::content_type_of(serve::format_for(request.accept))),
          .body = std::make_shared<const std::string>(serve::escaped_label(request.query))};
}

struct Server {
  sockaddr_un address = {};
  socklen_t size = sizeof(sa_family_t);
  std::unique_ptr<serve::HttpServer> http;

  Server() {
    OwnedFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    address.sun_family = AF_UNIX;
    // Linux chooses an abstract name.
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) std::abort();
    size = sizeof(address);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
    ::listen(listener.get(), 1);
    http = std::move(*serve::HttpServer::create(std::move(listener), answer));
    http->on_tick([] {});
  }
};

}  // namespace

void run_http(std::string_view bytes) {
  constexpr size_t kPieces = 3;
  Server server;
  const OwnedFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(client.get(), reinterpret_cast<const sockaddr*>(&server.address), server.size) != 0) std::abort();
  const size_t piece = bytes.size() / kPieces + 1;
  for (size_t i = 0; i < kPieces; ++i) {
    const std::string_view part = bytes.substr(std::min(i * piece, bytes.size()), piece);
    if (!part.empty()) (void)::send(client.get(), part.data(), part.size(), MSG_NOSIGNAL);
    server.http->run();
    for (const auto stream : server.http->ready_streams())
      server.http->send(stream, std::make_shared<const std::string>("data: {}\n\n"));
  }
  std::string all;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::recv(client.get(), buffer, sizeof(buffer), 0)) > 0;)
    all.append(buffer, static_cast<size_t>(count));
  if (!all.empty() && !all.starts_with("HTTP/1.1 ")) std::abort();
}

}  // namespace espy::fuzz
