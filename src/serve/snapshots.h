// Snapshots: the state of a run as messages for pages (server-sent events). A snapshot is taken once for all viewers;
// each gets what has changed since the last one that it took, and viewers at the same position share the bytes.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "output/format.h"
#include "output/recent_lines.h"
#include "runtime/live_run.h"
#include "serve/described_map.h"
#include "serve/http_server.h"

namespace espy::serve {

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

}  // namespace espy::serve
