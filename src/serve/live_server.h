// serve: the server of --listen.
//
// LiveServer: shows a live run (--listen): metrics for scrapers at /metrics, a page at /.
//
// In: the state of a run, read on request; requests. Out: texts made of them. Pages get a snapshot for all of them, at
// most ten a second: the maps that have changed since the last that they took. A map is read again for a page, or a
// text of metrics is made again, only after a multiple of the time that it took. So reading costs a small share of a
// CPU for any number of viewers and scrapers.
//
// Requests choose between a few texts and nothing else: no path is opened, nothing is run, no map changes. At a
// loopback address the Host must be a name of it; elsewhere, or if the environment sets one, a token is required.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "check/checked.h"
#include "output/format.h"
#include "output/log_sink.h"
#include "runtime/live_run.h"
#include "serve/described_map.h"
#include "serve/http_server.h"
#include "serve/metrics.h"

namespace espy::serve {

// The state of a run as messages for pages (server-sent events). A snapshot is taken once for all viewers. Each gets
// the changes since its last snapshot, and viewers at the same position share the bytes.
class Snapshots {
 public:
  // What a viewer has got already.
  struct Position {
    uint64_t version = 0;  // of the maps
    uint64_t line = 0;     // the number of the next line of the log
    uint64_t second = 0;   // of the last message, since the beginning
    auto operator<=>(const Position&) const = default;
  };

  // The arguments must outlive the object. `script`: its name.
  Snapshots(const std::vector<DescribedMap>& maps, const output::RecentLines& lines, std::string script,
            output::TextStyle style);

  // Reads the maps, but those for which it is too early after the last time.
  void take(runtime::LiveRun& run);
  // Reads all maps for the last time.
  void take_last(runtime::LiveRun& run);
  // Returns what a viewer at `position` lacks, and moves the position; null if it lacks nothing.
  Bytes message_for(Position& position, size_t viewers);

 private:
  struct MapState {
    std::string json;
    uint64_t version = 0;
    uint64_t next_ns = 0;  // when it may be read again
  };
  void read_map(runtime::LiveRun& run, size_t index);
  void read_losses_and_cost(runtime::LiveRun& run);
  Position newest() const;
  std::string message(const Position& from, size_t viewers) const;

  const std::vector<DescribedMap>& maps_;
  const output::RecentLines& lines_;
  std::string script_;
  output::TextStyle style_;
  std::vector<MapState> states_;  // as maps_
  uint64_t version_ = 0;
  uint64_t started_ns_;
  uint64_t losses_ns_ = 0;  // when the losses were read; 0: never
  std::string losses_json_ = "{}", cost_json_ = "{}";
  double cpu_share_ = 0;  // of this process, lately
  double cpu_seconds_ = 0;
  bool has_ended_ = false;
  std::map<Position, Bytes> shared_;  // messages made of this snapshot, by where they begin
};

struct LiveServerOptions {
  Address address;
  std::string token;   // "": none is required
  std::string script;  // its name
  size_t max_metric_samples = 0;
};

// Returns the token that requests need: the token of the environment (`given`: ESPY_LISTEN_TOKEN, may be null), a
// random one if the address is not the loopback, otherwise "". Fails if the given one is too short.
Result<std::string> choose_token(const char* given, const Address& address);

class LiveServer final : public runtime::RunServer {
 public:
  // `listener`: a socket that listens at the address. The other arguments, but `options` and `maps`, must outlive the
  // server.
  static Result<std::unique_ptr<LiveServer>> create(LiveServerOptions options, OwnedFd listener,
                                                    std::vector<DescribedMap> maps, const program::Program& program,
                                                    const output::TextStyle& style, output::Sink& sink);

  output::Sink& sink() { return sink_; }  // takes the output of the run
  const Address& address() const { return options_.address; }
  // The address of the page, with the token.
  std::string url() const;

  int fd() const override { return http_->fd(); }
  bool shows_cost() const override { return true; }
  void serve(runtime::LiveRun& run) override;
  void end(runtime::LiveRun& run) override;

 private:
  LiveServer(LiveServerOptions options, std::vector<DescribedMap> maps, const program::Program& program,
             const output::TextStyle& style, output::Sink& sink);
  HttpResponse answer(const HttpRequest& request);
  int refusal_of(const HttpRequest& request) const;
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse page() const;
  HttpResponse open_stream();
  void send_snapshots();

  LiveServerOptions options_;
  std::vector<DescribedMap> maps_;
  output::RecentLines lines_;
  output::LogSink sink_;
  Metrics metrics_;
  Snapshots snapshots_;
  std::unique_ptr<HttpServer> http_;
  runtime::LiveRun* run_ = nullptr;  // during a call of `serve` or `end`
  std::unordered_map<HttpServer::StreamId, Snapshots::Position> viewers_;

  struct CachedText {
    Bytes text;
    uint64_t good_until_ns = 0;
  };
  CachedText metrics_text_[2];  // by ExpositionFormat
};

}  // namespace espy::serve
