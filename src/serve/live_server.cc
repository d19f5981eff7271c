#include "serve/live_server.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/clock.h"
#include "base/end_request.h"
#include "base/limits.h"
#include "base/strings.h"
#include "output/json.h"
#include "page_html.h"

namespace espy::serve {

namespace {

// Between the times when a map is read for pages.
constexpr uint64_t kLeastPauseNs = 95'000'000;  // ticks come every 100 ms
constexpr uint64_t kLongestPauseNs = 3 * kNsPerSecond;
constexpr uint64_t kPauseFactor = 50;  // of the time that it took: 2 % of a CPU
// Between texts of metrics, by the time that the last one took: 5 % of a CPU.
constexpr uint64_t kMetricsPauseFactor = 20;
constexpr size_t kLeastTokenBytes = 16;

Result<std::string> random_text(size_t bytes) {
  std::string raw(bytes, '\0');
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size()))
    return fail_errno("cannot make a random token", errno);
  return hexadecimal(raw);
}

// Characters that need no escape in a URL.
bool is_url_character(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' || c == '_' || c == '.';
}

// `nonce`: what the policy of the response names. The style and the script of the page have it.
std::string make_page(std::string_view nonce) { return fill(kPageHtml, {{"nonce", nonce}}); }

HttpResponse short_response(int status, std::string_view text) {
  HttpResponse out{.status = status};
  if (status == 401) out.headers = {{"WWW-Authenticate", "Bearer"}};
  out.body = std::make_shared<const std::string>(text);
  return out;
}

}  // namespace

// ---- Snapshots

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
  std::vector<std::string> reasons = losses.file_changes;
  reasons.insert(reasons.end(), losses.others.begin(), losses.others.end());
  if (losses.uncertain_addresses > 0) reasons.push_back(losses.uncertain_sentence());
  output::JsonList shown(",");
  for (const std::string& reason : reasons) shown.add(json_string(reason));
  losses_json_ += ",\"reasons\":" + shown.array() + "}";
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
  output::JsonList maps(",");
  for (const MapState& map : states_)
    if (map.version > from.version) maps.add(map.json);
  return fmt::format(
      "data: {{\"script\":{},\"version\":\"{}\",\"elapsed\":{:.3f},\"ended\":{},\"viewers\":{},\"cpu_seconds\":{:.3f},"
      "\"cpu_share\":{:.4f},\"losses\":{},\"cost\":{},\"log\":{},\"maps\":{}}}\n\n",
      json_string(script_), ESPY_VERSION, static_cast<double>(monotonic_ns() - started_ns_) / 1e9, has_ended_, viewers,
      cpu_seconds_, cpu_share_, losses_json_, cost_json_, lines_.json_from(from.line), maps.array());
}

// ---- The server

Result<std::string> choose_token(const char* given, const Address& address) {
  constexpr size_t kRandomBytes = 16;
  if (given == nullptr || *given == '\0') return address.is_loopback ? std::string() : TRY(random_text(kRandomBytes));
  const std::string token = given;
  if (token.size() < kLeastTokenBytes || !std::ranges::all_of(token, is_url_character))
    return fail(fmt::format("ESPY_LISTEN_TOKEN must have at least {} characters, of letters, digits, `-`, `_` and `.`",
                            kLeastTokenBytes));
  return token;
}

Result<std::unique_ptr<LiveServer>> LiveServer::create(LiveServerOptions options, OwnedFd listener,
                                                       std::vector<DescribedMap> maps, const program::Program& program,
                                                       const output::TextStyle& style, output::Sink& sink) {
  std::unique_ptr<LiveServer> out(new LiveServer(std::move(options), std::move(maps), program, style, sink));
  LiveServer* server = out.get();
  out->http_ = TRY(HttpServer::create(std::move(listener),
                                      [server](const HttpRequest& request) { return server->answer(request); }));
  out->http_->on_tick([server] { server->send_snapshots(); });
  return out;
}

LiveServer::LiveServer(LiveServerOptions options, std::vector<DescribedMap> maps, const program::Program& program,
                       const output::TextStyle& style, output::Sink& sink)
    : options_(std::move(options)),
      maps_(std::move(maps)),
      sink_(sink, lines_, style),
      metrics_(maps_, program, options_.script, style, options_.max_metric_samples),
      snapshots_(maps_, lines_, options_.script, style) {}

std::string LiveServer::url() const {
  return options_.address.url() + (options_.token.empty() ? "" : "?token=" + options_.token);
}

void LiveServer::serve(runtime::LiveRun& run) {
  run_ = &run;
  http_->run();
  run_ = nullptr;
}

void LiveServer::end(runtime::LiveRun& run) {
  const Status sent = catch_out_of_memory([&]() -> Status {
    if (http_->stream_count() == 0) return {};
    snapshots_.take_last(run);
    send_snapshots();
    http_->end_streams();
    return {};
  });
  if (!sent) http_->close_all();
  serve(run);
}

// ---- Requests

// The status of a refusal; 0 if the request is allowed.
int LiveServer::refusal_of(const HttpRequest& request) const {
  if (options_.token.empty()) return is_loopback_name(request.host) ? 0 : 403;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view header = request.authorization.starts_with(kScheme)
                                      ? request.authorization.substr(kScheme.size())
                                      : query_parameter(request.query, "token");
  return equal_in_constant_time(header, options_.token) ? 0 : 401;
}

HttpResponse LiveServer::answer(const HttpRequest& request) {
  switch (refusal_of(request)) {
    case 401: return short_response(401, "a token is required: ?token=TOKEN or Authorization: Bearer TOKEN\n");
    case 403: return short_response(403, "the Host of the request must be localhost or a loopback address\n");
    default: break;
  }
  if (request.path == "/metrics") return metrics(request);
  if (request.path == "/") return page();
  if (request.path == "/events") return open_stream();
  return short_response(404, "available: /, /events and /metrics\n");
}

HttpResponse LiveServer::metrics(const HttpRequest& request) {
  const ExpositionFormat format = format_for(request.accept);
  CachedText& cached = metrics_text_[static_cast<size_t>(format)];
  const uint64_t begin_ns = monotonic_ns();
  if (begin_ns >= cached.good_until_ns) {
    const ServerCounts counts{http_->stream_count(), http_->dropped_streams()};
    cached.text = std::make_shared<const std::string>(metrics_.text(*run_, counts, format));
    const uint64_t end_ns = monotonic_ns();
    cached.good_until_ns = end_ns + (end_ns - begin_ns) * kMetricsPauseFactor;
  }
  HttpResponse out;
  out.content_type = content_type_of(format);
  out.body = cached.text;
  return out;
}

HttpResponse LiveServer::page() const {
  const auto nonce = random_text(16);
  if (!nonce) return short_response(503, nonce.error().message);
  HttpResponse out{.content_type = "text/html; charset=utf-8"};
  out.headers = {
      {"Content-Security-Policy",
       fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; img-src "
                   "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                   *nonce)},
      {"Referrer-Policy", "no-referrer"}};
  out.body = std::make_shared<const std::string>(make_page(*nonce));
  return out;
}

HttpResponse LiveServer::open_stream() {
  if (!http_->has_room_for_stream()) return short_response(503, "too many pages show this run\n");
  return {.content_type = "text/event-stream", .is_stream = true};
}

// ---- Snapshots

// A viewer that has not taken its last message yet gets the changes later, as one message.
void LiveServer::send_snapshots() {
  if (run_ != nullptr) snapshots_.take(*run_);
  const std::vector<HttpServer::StreamId> ready = http_->ready_streams();
  const size_t count = http_->stream_count();
  for (const HttpServer::StreamId id : ready)
    if (const Bytes message = snapshots_.message_for(viewers_[id], count)) http_->send(id, message);
  if (viewers_.size() > 2 * count)
    std::erase_if(viewers_, [&](const auto& viewer) { return !http_->is_stream(viewer.first); });
}

}  // namespace espy::serve
