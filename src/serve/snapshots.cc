#include "serve/snapshots.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/time_limit.h"
#include "output/json.h"
#include "serve/cost.h"
#include "serve/map_json.h"
#include "serve/metrics.h"

namespace espy::serve {

namespace {

constexpr uint64_t kLeastPauseNs = 95'000'000;  // ticks come every 100 ms
constexpr uint64_t kLongestPauseNs = 3 * kNsPerSecond;
constexpr uint64_t kPauseFactor = 50;  // of the time that it took to read a map: 2 % of a CPU

}  // namespace

Snapshots::Snapshots(const std::vector<DescribedMap>& maps, const output::RecentLines& lines, std::string script,
                     output::TextStyle style)
    : maps_(maps),
      lines_(lines),
      script_(std::move(script)),
      style_(std::move(style)),
      states_(maps.size()),
      started_ns_(monotonic_ns()) {}

void Snapshots::take(runtime::LiveRun& run) {
  shared_.clear();  // the log may have grown
  ++version_;
  const uint64_t now_ns = monotonic_ns();
  for (size_t i = 0; i < maps_.size(); ++i)
    if (now_ns >= states_[i].next_ns) read_map(run, i);
  if (now_ns >= losses_ns_ + kNsPerSecond) read_losses_and_cost(run);
}

void Snapshots::take_last(runtime::LiveRun& run) {
  has_ended_ = true;
  losses_ns_ = 0;
  for (MapState& map : states_) map.next_ns = 0;
  take(run);
}

void Snapshots::read_map(runtime::LiveRun& run, size_t index) {
  MapState& state = states_[index];
  const auto begin = thread_cpu_time();
  const auto view = run.read_map(maps_[index].id);
  std::string json = view ? map_json(maps_[index], *view, style_) : state.json;
  const auto pause_ns = static_cast<uint64_t>((thread_cpu_time() - begin).count()) * kPauseFactor;
  state.next_ns = monotonic_ns() + std::clamp(pause_ns, kLeastPauseNs, kLongestPauseNs);
  if (json == state.json) return;
  state.json = std::move(json);
  state.version = version_;
}

// The kernel is asked for each program, so this is done once a second.
void Snapshots::read_losses_and_cost(runtime::LiveRun& run) {
  const output::LossReport losses = run.losses();
  uint64_t hits = 0;
  for (const output::ActionReport& action : losses.actions) hits += action.hits();
  losses_json_ = fmt::format("{{\"hits\":{},\"skipped_probes\":{}", hits, losses.skipped_probes.size());
  for (size_t kind = 0; kind < output::kLossKinds; ++kind)
    losses_json_ +=
        fmt::format(",\"{}\":{}", output::name_of(static_cast<program::LossKind>(kind)).key, losses.totals[kind]);
  losses_json_ += "}";
  cost_json_ = cost_json(run.cost());
  const double used = cpu_seconds();
  const uint64_t now_ns = monotonic_ns();
  if (losses_ns_ != 0) cpu_share_ = (used - cpu_seconds_) * 1e9 / static_cast<double>(now_ns - losses_ns_);
  cpu_seconds_ = used;
  losses_ns_ = now_ns;
}

Snapshots::Position Snapshots::newest() const {
  return {version_, lines_.next_number(), (monotonic_ns() - started_ns_) / kNsPerSecond};
}

Bytes Snapshots::message_for(Position& position, size_t viewers) {
  const Position now = newest();
  const bool is_changed =
      std::ranges::any_of(states_, [&](const MapState& map) { return map.version > position.version; });
  const bool has_news = is_changed || now.line > position.line || now.second > position.second || has_ended_;
  if (!has_news) return nullptr;
  Bytes& bytes = shared_[position];
  if (bytes == nullptr) bytes = std::make_shared<const std::string>(message(position, viewers));
  position = now;
  return bytes;
}

std::string Snapshots::message(const Position& from, size_t viewers) const {
  std::string out = fmt::format(
      "data: {{\"script\":{},\"version\":\"{}\",\"elapsed\":{:.3f},\"ended\":{},\"viewers\":{},\"cpu_seconds\":{:.3f},"
      "\"cpu_share\":{:.4f},\"losses\":{},\"cost\":{},\"log\":{},\"maps\":[",
      output::quoted(script_), ESPY_VERSION, static_cast<double>(monotonic_ns() - started_ns_) / 1e9, has_ended_,
      viewers, cpu_seconds_, cpu_share_, losses_json_, cost_json_, lines_.json_from(from.line));
  bool is_first = true;
  for (const MapState& map : states_) {
    if (map.version <= from.version) continue;
    out.append(is_first ? "" : ",").append(map.json);
    is_first = false;
  }
  return out + "]}\n\n";
}

}  // namespace espy::serve
