// Spans: a call tree for each thread.
//
// In: begins, ends, instants and counters in the order in which they happened. Out: the same events with their depth,
// ends with their duration, always properly nested.
//
// Ends are matched with begins by function and stack frame if both come from probes of a function. So calls that never
// return (longjmp, exceptions, exit) and lost records do not corrupt the rest. A begin whose call must be over is ended
// and marked, and an end without a begin is marked. Active calls of a thread have different frames, the inner one at
// the lower address. Kernel functions have no known frame: an end matches the innermost call of its function. All other
// ends (of tracepoints, of regions between two functions) match the last begin.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/value.h"

namespace espy::output {

enum class SpanKind : uint8_t { kEnter, kExit, kInstant, kCounter };
// An exit whose begin was not seen is kNoBegin. An exit that was not seen, and follows from later events, is kNoEnd.
// Without an exit yet, and with later events hidden, it is kInProgress.
enum class SpanAnomaly : uint8_t { kNone, kNoBegin, kNoEnd, kInProgress };

struct SpanEvent {
  SpanKind kind = SpanKind::kInstant;
  uint64_t time_ns = 0;
  uint32_t pid = 0, tid = 0, cpu = 0;
  std::string comm;
  std::string name;  // "fib": equal for all spans of a kind
  std::string text;  // "(fib 4)": the text of the script
  std::vector<std::pair<std::string, Value>> arguments;
  size_t shown_arguments = 0;  // how many of them `text` shows

  // Set by CallTrees:
  uint32_t depth = 0;        // 0: outermost
  uint64_t duration_ns = 0;  // exits that have a begin
  SpanAnomaly anomaly = SpanAnomaly::kNone;

  // An unseen exit has only the facts of its begin.
  bool is_seen() const { return anomaly != SpanAnomaly::kNoEnd && anomaly != SpanAnomaly::kInProgress; }
};

// The location that a begin or an end comes from. `function`: a number for each function, 0 if there is none.
struct SpanPlace {
  uint32_t function = 0;
  bool is_entry = false;
  bool is_return = false;
  uint64_t frame = 0;           // 0: unknown
  uint64_t return_address = 0;  // entries with a frame
};

// Selects the spans to show.
struct SpanFilter {
  uint32_t max_depth = 0;          // 0: no limit
  uint64_t max_count = 0;          // of ends and instants; 0: no limit
  uint64_t slower_than_ns = 0;     // only spans that take longer; 0: all
  std::vector<std::string> order;  // only spans nested in this order, by name; empty: all
};

std::string_view anomaly_text(SpanAnomaly anomaly);  // "no begin"; empty for none

class CallTrees {
 public:
  // `page_size_bytes`: of the traced kernel.
  CallTrees(SpanFilter filter, uint32_t page_size_bytes, std::function<void(const SpanEvent&)> show)
      : filter_(std::move(filter)), page_size_bytes_(page_size_bytes), show_(std::move(show)) {}

  void add(SpanEvent event, const SpanPlace& place);
  // True if max_count is reached; further events are ignored.
  bool is_full() const { return filter_.max_count != 0 && count_ >= filter_.max_count; }
  // Hides spans that begin in this time, in which only some of the probes are attached.
  void hide(uint64_t from_ns, uint64_t to_ns) {
    hidden_from_ns_ = from_ns;
    hidden_to_ns_ = to_ns;
  }
  bool is_hidden(uint64_t time_ns) const { return time_ns >= hidden_from_ns_ && time_ns < hidden_to_ns_; }
  // Ends all open spans of the thread of `last`, its last event for now, as in progress.
  void end_thread(const SpanEvent& last);
  // Call when records are lost: ends may be missing from now on.
  void note_losses() { has_losses_ = true; }
  // Ends all open spans.
  void close(uint64_t now_ns);

 private:
  struct Open {
    SpanEvent begin;
    SpanPlace place;
    bool is_shown = false;
    bool is_in_order = false;
    bool is_hidden = false;
  };
  struct Thread {
    uint32_t pid = 0;
    uint64_t last_ns = 0;
    std::vector<Open> open;  // outermost first
  };
  static constexpr size_t kNone = SIZE_MAX;

  Thread& thread_of(const SpanEvent& event);
  void enter(Thread& thread, SpanEvent event, const SpanPlace& place);
  void exit(Thread& thread, SpanEvent event, const SpanPlace& place);
  void end_dead(Thread& thread, const SpanPlace& place, uint64_t now_ns);
  size_t find_begin(const Thread& thread, const SpanPlace& place) const;
  // A tail call takes over its caller's frame, and both return together. The kernel has made the caller return to the
  // uprobe trampoline, at the start of a page: no call instruction leaves such an address.
  bool is_tail_call(const SpanPlace& place) const { return place.return_address % page_size_bytes_ == 0; }
  void end_innermost(Thread& thread, SpanEvent end);
  void end_all(Thread& thread, uint64_t now_ns, SpanAnomaly anomaly = SpanAnomaly::kNoEnd);
  void forget_threads();
  void show(const SpanEvent& event);
  void end_lost(Thread& thread, const SpanEvent& event, const SpanPlace& place);
  void show_begins(Thread& thread);
  static size_t depth_in_order(const Thread& thread);
  bool is_in_order(const Thread& thread) const { return depth_in_order(thread) == filter_.order.size(); }
  bool is_too_deep(const SpanEvent& event) const { return filter_.max_depth != 0 && event.depth >= filter_.max_depth; }
  uint32_t depth_of(const Thread& thread) const;

  SpanFilter filter_;
  uint64_t page_size_bytes_;
  std::function<void(const SpanEvent&)> show_;
  // By tid; the idle threads, which are all 0, by CPU. At kManyThreads, those without open spans are forgotten; at
  // kMostThreads, the half that was quiet for longest, whose spans end there.
  static constexpr size_t kManyThreads = 5000, kMostThreads = 50'000;
  std::unordered_map<uint64_t, Thread> threads_;
  size_t next_forget_ = kManyThreads;
  std::vector<bool> has_entries_;  // by function: an entry was seen
  bool has_losses_ = false;
  uint64_t count_ = 0;  // of ends and instants shown
  uint64_t hidden_from_ns_ = 0, hidden_to_ns_ = 0;
};

// ---- Spans as text, in one of three layouts. In tree and graph a line names the thread when it changes.
//
//   tree        > (fib 2)                columns   TIME, CPU, PID, COMM and the event, a line each
//                 > (fib 1)
//                 < 1  1.2us             graph     fib(n = 2) {
//               < 1  5.3us                           fib(n = 1); /* = 1 */
//                                                  } /* = 1 */

// "812ns", "1.234us", "12.300ms": three decimals except for nanoseconds.
std::string duration_text(uint64_t ns);

class SpanText {
 public:
  explicit SpanText(const TextStyle& style) : style_(style) {}

  // Returns the text to write now. The graph layout holds a call back until it knows whether there are calls within it.
  std::string add(const SpanEvent& event);
  std::string flush();  // returns the call that was held back

 private:
  std::string header(const SpanEvent& event);
  std::string tree_line(const SpanEvent& event) const;
  std::string column_line(const SpanEvent& event);
  std::string graph_lines(const SpanEvent& event);
  std::string graph_line(const SpanEvent& event, const std::string& duration, const std::string& text) const;
  // "(a = 1, b = 2)", or one argument a line if one has several lines; starts at `column`.
  std::string value_text(const Value& value, size_t column) const;
  std::string arguments(const SpanEvent& event, size_t first, size_t column) const;
  std::string call(const SpanEvent& event, size_t column) const;
  std::string graph_call(const SpanEvent& event, size_t column) const;
  std::string values(const SpanEvent& event, size_t column) const;
  std::string counter(const SpanEvent& event) const;
  std::string outcome(const SpanEvent& event, size_t column) const;

  const TextStyle& style_;
  std::optional<std::pair<uint32_t, std::string>> thread_;  // of the last line: id, title
  std::optional<SpanEvent> kept_;
};

}  // namespace espy::output
