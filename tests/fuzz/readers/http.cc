// Requests to the server of --listen: the bytes of a client, in pieces, through a socket to the server of a run.
// Whether a token is required depends on their number.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "../reader.h"
#include "serve/live_server.h"

namespace espy::fuzz {

namespace {

constexpr std::string_view kToken = "0123456789abcdef";

class EmptyRun final : public runtime::LiveRun {
 public:
  Result<output::MapView> read_map(program::ScriptMapId) override { return output::MapView{.name = "@x"}; }
  output::LossReport losses() override { return {}; }
  const runtime::RunCost& cost() override { return cost_; }

 private:
  runtime::RunCost cost_;
};

class Server {
 public:
  explicit Server(bool needs_token) {
    OwnedFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    address_.sun_family = AF_UNIX;
    // Linux chooses an abstract name.
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address_), size_) != 0) std::abort();
    size_ = sizeof(address_);
    ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address_), &size_);
    ::listen(listener.get(), 1);
    serve::LiveServerOptions options{.token = std::string(needs_token ? kToken : ""), .max_metric_samples = 10};
    std::vector<serve::DescribedMap> maps = {{{}, "@x", types::Kind::kCount, {"key"}, "Help."}};
    auto server =
        serve::LiveServer::create(std::move(options), std::move(listener), std::move(maps), program_, {}, *sink_);
    if (!server) std::abort();
    live_ = std::move(*server);
  }

  OwnedFd connect() const {
    OwnedFd out(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::connect(out.get(), reinterpret_cast<const sockaddr*>(&address_), size_) != 0) std::abort();
    return out;
  }

  // Does all that there is to do.
  void serve() {
    for (pollfd ready{live_->fd(), POLLIN, 0}; ::poll(&ready, 1, 0) > 0;) live_->serve(run_);
  }
  void end() { live_->end(run_); }

 private:
  sockaddr_un address_ = {};
  socklen_t size_ = sizeof(sa_family_t);
  program::Program program_;
  OwnedFd null_{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  output::Writer writer_{null_.get(), output::Buffering::kFull};
  std::unique_ptr<output::Sink> sink_ = output::find_sink("text")->create(writer_, {}, output::Quiet::kYes);
  EmptyRun run_;
  std::unique_ptr<serve::LiveServer> live_;
};

}  // namespace

void run_http(std::string_view bytes) {
  constexpr size_t kPieces = 3;
  ::signal(SIGPIPE, SIG_IGN);
  const bool needs_token = bytes.size() % 2 == 1;
  Server server(needs_token);
  const OwnedFd client = server.connect();
  const size_t piece = bytes.size() / kPieces + 1;
  for (size_t i = 0; i < kPieces; ++i) {
    const std::string_view part = bytes.substr(std::min(i * piece, bytes.size()), piece);
    if (!part.empty()) (void)::send(client.get(), part.data(), part.size(), MSG_NOSIGNAL);
    server.serve();
  }
  server.end();
  std::string all;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::recv(client.get(), buffer, sizeof(buffer), 0)) > 0;)
    all.append(buffer, static_cast<size_t>(count));
  if (!all.empty() && !all.starts_with("HTTP/")) std::abort();
  if (needs_token && bytes.find(kToken) == bytes.npos && all.find(" 200 OK\r\n") != all.npos) std::abort();
}

}  // namespace espy::fuzz
