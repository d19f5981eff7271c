// Spans: what begins and ends in a thread, as a tree for each thread.
//
// In: begins, ends, instants and counters in the order in which they happened. Out: the same, each with its depth, ends
// with how long it took, and nothing that does not fit: to whom shows them.
//
// Which begin an end belongs to is told by the call that both are of, where both come from a function's probes. So a
// longjmp, an exception or an exit, which leave calls without their ends, and records that found no room in a ring,
// do not shift what follows: a begin that can have no end any more is ended there and marked, an end whose begin was
// never seen is marked. Two calls of one thread that are under way at once have different frames, the inner one's is
// lower; of the kernel's functions, where no frame is known, the innermost call of the same function is meant. All
// other ends (a tracepoint's, a region between two functions) end what began last.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "output/value.h"

namespace espy::output {

enum class SpanKind : uint8_t { kEnter, kExit, kInstant, kCounter };
// What an exit lacks: its begin was never seen, or it was never seen itself.
enum class SpanAnomaly : uint8_t { kNone, kNoBegin, kNoEnd };

struct SpanEvent {
  SpanKind kind = SpanKind::kInstant;
  uint64_t time_ns = 0;
  uint32_t pid = 0, tid = 0, cpu = 0;
  std::string comm;
  std::string name;  // "fib": what is the same for all of its kind
  std::string text;  // "(fib 4)": what the script wants to be shown
  std::vector<std::pair<std::string, Value>> arguments;
  size_t shown_arguments = 0;  // how many of them are part of the text already

  // Found out here:
  uint32_t depth = 0;        // 0: the outermost
  uint64_t duration_ns = 0;  // exits that have a begin
  SpanAnomaly anomaly = SpanAnomaly::kNone;
};

// Where a begin or an end came from. `function` is a number for each function, 0 for what is none's.
struct SpanPlace {
  uint32_t function = 0;
  bool is_entry = false;
  bool is_return = false;
  uint64_t frame = 0;           // 0: unknown
  uint64_t return_address = 0;  // entries with a frame
};

// Which of them are shown.
struct SpanFilter {
  uint32_t max_depth = 0;          // 0: any
  uint64_t max_count = 0;          // of ends and instants that are shown; 0: any
  uint64_t slower_than_ns = 0;     // only what took longer
  std::vector<std::string> order;  // only what is within each other in this order, by name
};

std::string_view anomaly_text(SpanAnomaly anomaly);  // "no begin"; empty for none

class CallTrees {
 public:
  // `page_size_bytes` is that of the traced kernel.
  CallTrees(SpanFilter filter, uint32_t page_size_bytes, std::function<void(const SpanEvent&)> show)
      : filter_(std::move(filter)), page_size_bytes_(page_size_bytes), show_(std::move(show)) {}

  void add(SpanEvent event, const SpanPlace& place);
  // As many were shown as are wanted: no more are taken.
  bool is_full() const { return filter_.max_count != 0 && count_ >= filter_.max_count; }
  // What begins in between is not shown: some probes were attached by then and others not, so it may have no end.
  void hide(uint64_t from_ns, uint64_t to_ns) {
    hidden_from_ns_ = from_ns;
    hidden_to_ns_ = to_ns;
  }
  // From here on ends may be missing.
  void note_losses() { has_losses_ = true; }
  // Ends all that is still open: the run is over.
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
  std::unordered_map<uint64_t, Thread> threads_;  // by tid; the idle threads, which are all 0, by CPU
  std::vector<bool> has_entries_;                 // by function: its entries are begins
  bool has_losses_ = false;
  uint64_t count_ = 0;  // of ends and instants that were shown
  uint64_t hidden_from_ns_ = 0, hidden_to_ns_ = 0;
};

}  // namespace espy::output
