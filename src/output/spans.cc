#include "output/spans.h"

#include <algorithm>

namespace espy::output {

namespace {

constexpr uint64_t kIdleThreads = uint64_t{1} << 32;
// Frames that are farther apart are on different stacks, as those of signal handlers and coroutines.
constexpr uint64_t kStackBytes = 8 << 20;
constexpr size_t kMaxOpen = 65536;  // in a thread, as a script may begin spans and never end them

bool are_on_one_stack(uint64_t a, uint64_t b) { return (a > b ? a - b : b - a) < kStackBytes; }

bool are_of_one_call(const SpanPlace& begin, const SpanPlace& end) {
  return begin.is_entry && begin.function == end.function && begin.frame == end.frame;
}

}  // namespace

std::string_view anomaly_text(SpanAnomaly anomaly) {
  switch (anomaly) {
    case SpanAnomaly::kNoBegin: return "no begin";
    case SpanAnomaly::kNoEnd: return "no end";
    case SpanAnomaly::kInProgress: return "in progress";
    case SpanAnomaly::kNone: break;
  }
  return "";
}

// Threads that have ended in the middle of a span keep it open.
void CallTrees::forget_threads() {
  std::erase_if(threads_, [](const auto& entry) { return entry.second.open.empty(); });
  if (threads_.size() >= kMostThreads) {
    std::vector<uint64_t> times;
    for (const auto& [id, thread] : threads_) times.push_back(thread.last_ns);
    const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, middle);
    for (auto entry = threads_.begin(); entry != threads_.end();) {
      Thread& thread = entry->second;
      if (thread.last_ns > *middle) {
        ++entry;
        continue;
      }
      end_all(thread, thread.last_ns);
      entry = threads_.erase(entry);
    }
  }
  next_forget_ = std::clamp(2 * threads_.size(), kManyThreads, kMostThreads + kManyThreads);
}

void CallTrees::end_all(Thread& thread, uint64_t now_ns, SpanAnomaly anomaly) {
  while (!thread.open.empty()) end_innermost(thread, {.time_ns = now_ns, .anomaly = anomaly});
}

void CallTrees::end_thread(const SpanEvent& last) {
  if (is_full()) return;
  Thread& thread = thread_of(last);
  end_all(thread, std::max(thread.last_ns, last.time_ns), SpanAnomaly::kInProgress);
}

// Ends the spans of a process whose thread id was reused by another one.
CallTrees::Thread& CallTrees::thread_of(const SpanEvent& event) {
  if (threads_.size() >= next_forget_) forget_threads();
  Thread& thread = threads_[event.tid != 0 ? event.tid : kIdleThreads + event.cpu];
  if (thread.pid != event.pid) {
    end_all(thread, thread.last_ns);
    thread.pid = event.pid;
  }
  return thread;
}

void CallTrees::show(const SpanEvent& event) {
  count_ += event.kind == SpanKind::kExit || event.kind == SpanKind::kInstant ? 1 : 0;
  show_(event);
}

void CallTrees::add(SpanEvent event, const SpanPlace& place) {
  if (is_full()) return;
  Thread& thread = thread_of(event);
  // An event may be reserved in the ring before an earlier one, by an interrupt after that one took its time.
  event.time_ns = thread.last_ns = std::max(thread.last_ns, event.time_ns);
  if (event.kind == SpanKind::kEnter) return enter(thread, std::move(event), place);
  if (event.kind == SpanKind::kExit) return exit(thread, std::move(event), place);
  event.depth = depth_of(thread);
  const bool is_filtered = !filter_.order.empty() || filter_.slower_than_ns != 0;
  const bool is_shown = !is_filtered || (!thread.open.empty() && thread.open.back().is_shown);
  if (is_shown && !is_too_deep(event)) show(event);
}

void CallTrees::enter(Thread& thread, SpanEvent event, const SpanPlace& place) {
  end_dead(thread, place, event.time_ns);
  end_lost(thread, event, place);
  if (place.is_entry) {
    if (has_entries_.size() <= place.function) has_entries_.resize(place.function + 1);
    has_entries_[place.function] = true;
  }
  if (thread.open.size() >= kMaxOpen) end_innermost(thread, {.time_ns = event.time_ns, .anomaly = SpanAnomaly::kNoEnd});
  event.depth = depth_of(thread);
  Open open{std::move(event), place};
  open.is_hidden = is_hidden(open.begin.time_ns);
  const size_t reached = depth_in_order(thread);
  open.is_in_order = reached < filter_.order.size() && filter_.order[reached] == open.begin.name;
  thread.open.push_back(std::move(open));
  if (filter_.slower_than_ns == 0 && is_in_order(thread)) show_begins(thread);
}

void CallTrees::exit(Thread& thread, SpanEvent event, const SpanPlace& place) {
  const size_t begin = find_begin(thread, place);
  if (begin == kNone) {
    end_dead(thread, place, event.time_ns);
    event.depth = depth_of(thread);
    event.anomaly = SpanAnomaly::kNoBegin;
    const bool is_wanted = filter_.order.empty() && filter_.slower_than_ns == 0;
    if (is_wanted && !is_too_deep(event)) show(event);
    return;
  }
  while (thread.open.size() > begin + 1)
    end_innermost(thread, {.time_ns = event.time_ns, .cpu = event.cpu, .anomaly = SpanAnomaly::kNoEnd});
  end_innermost(thread, std::move(event));
}

// After lost records, ends may be missing. A second begin of a kernel function then ends the first: recursion is rare
// there.
void CallTrees::end_lost(Thread& thread, const SpanEvent& event, const SpanPlace& place) {
  if (!has_losses_ || place.frame != 0) return;
  const auto is_same = [&](const Open& open) {
    return open.place.function == place.function && open.begin.name == event.name;
  };
  while (std::ranges::any_of(thread.open, is_same))
    end_innermost(thread, {.time_ns = event.time_ns, .anomaly = SpanAnomaly::kNoEnd});
}

// Ends the calls whose frame is that of a new call, or below it.
void CallTrees::end_dead(Thread& thread, const SpanPlace& place, uint64_t now_ns) {
  if (place.frame == 0) return;
  const auto is_dead = [&](const SpanPlace& open) {
    if (open.frame == 0 || !are_on_one_stack(open.frame, place.frame)) return false;
    return open.frame < place.frame || (open.frame == place.frame && place.is_entry && !is_tail_call(place));
  };
  size_t dead = 0;  // how many of the innermost calls
  for (size_t i = thread.open.size(); i-- > 0;)
    if (is_dead(thread.open[i].place)) dead = thread.open.size() - i;
  for (; dead > 0; --dead) end_innermost(thread, {.time_ns = now_ns, .anomaly = SpanAnomaly::kNoEnd});
}

size_t CallTrees::find_begin(const Thread& thread, const SpanPlace& place) const {
  if (thread.open.empty()) return kNone;
  if (place.is_return) {
    for (size_t i = thread.open.size(); i-- > 0;)
      if (are_of_one_call(thread.open[i].place, place)) return i;
    if (place.function < has_entries_.size() && has_entries_[place.function]) return kNone;
  }
  return thread.open.size() - 1;
}

// `end`: the event, or what is known of an end that was not seen.
void CallTrees::end_innermost(Thread& thread, SpanEvent end) {
  const Open& open = thread.open.back();
  end.kind = SpanKind::kExit;
  end.duration_ns = end.time_ns - std::min(end.time_ns, open.begin.time_ns);
  const bool is_slow = filter_.slower_than_ns != 0 && end.duration_ns > filter_.slower_than_ns;
  if (is_slow && is_in_order(thread)) show_begins(thread);
  const SpanEvent& begin = open.begin;
  end.pid = begin.pid;
  end.tid = begin.tid;
  end.depth = begin.depth;
  end.name = begin.name;
  if (end.comm.empty()) end.comm = begin.comm;
  if (!end.is_seen()) end.text = begin.text;
  if (open.is_shown) show(end);
  thread.open.pop_back();
}

// Shows the begins that are not shown yet, outermost first.
void CallTrees::show_begins(Thread& thread) {
  const bool has_order = !filter_.order.empty();
  size_t first = thread.open.size();
  while (first > 0 && !thread.open[first - 1].is_shown) --first;
  if (has_order || hidden_to_ns_ != 0) first = 0;  // some spans are never shown
  for (size_t i = first; i < thread.open.size(); ++i) {
    Open& open = thread.open[i];
    if (open.is_shown || open.is_hidden || is_too_deep(open.begin) || (has_order && !open.is_in_order)) continue;
    open.is_shown = true;
    show(open.begin);
  }
}

size_t CallTrees::depth_in_order(const Thread& thread) {
  return static_cast<size_t>(std::ranges::count(thread.open, true, &Open::is_in_order));
}

uint32_t CallTrees::depth_of(const Thread& thread) const {
  if (!filter_.order.empty()) return static_cast<uint32_t>(depth_in_order(thread));
  const bool may_be_hidden = hidden_to_ns_ != 0;
  const auto hidden = may_be_hidden ? std::ranges::count(thread.open, true, &Open::is_hidden) : 0;
  return static_cast<uint32_t>(thread.open.size()) - static_cast<uint32_t>(hidden);
}

void CallTrees::close(uint64_t now_ns) {
  for (auto& [id, thread] : threads_) end_all(thread, std::max(now_ns, thread.last_ns));
  threads_.clear();
}

}  // namespace espy::output
