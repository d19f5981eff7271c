#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "output/spans.h"

namespace espy::output {
namespace {

// A thread of calls: each line is what is shown, "> f", "< f 5", "< f 5 (no end)".
class Calls {
 public:
  explicit Calls(SpanFilter filter = {})
      : trees_(std::move(filter), 4096, [this](const SpanEvent& event) { shown_ += line_of(event); }) {}

  Calls& enter(uint32_t function, uint64_t frame, uint64_t return_address = 0x401234) {
    return add(SpanKind::kEnter, {function, true, false, frame, return_address});
  }
  Calls& leave(uint32_t function, uint64_t frame) { return add(SpanKind::kExit, {function, false, true, frame}); }
  Calls& end() { return add(SpanKind::kExit, {}); }
  Calls& lose() {
    trees_.note_losses();
    return *this;
  }
  std::string close() {
    trees_.close(++now_ns_);
    return shown_;
  }
  std::string shown() const { return shown_; }

 private:
  static std::string line_of(const SpanEvent& event) {
    std::string out(event.depth, ' ');
    out += (event.kind == SpanKind::kEnter ? "> " : "< ") + event.name;
    if (event.kind == SpanKind::kExit && event.anomaly != SpanAnomaly::kNoBegin)
      out += " " + std::to_string(event.duration_ns);
    if (event.anomaly != SpanAnomaly::kNone) out += " (" + std::string(anomaly_text(event.anomaly)) + ")";
    return out + "\n";
  }

  Calls& add(SpanKind kind, SpanPlace place) {
    SpanEvent event;
    event.kind = kind;
    event.time_ns = ++now_ns_;
    event.pid = event.tid = 1;
    event.name = place.function == 0 ? "-" : std::string(1, static_cast<char>('a' + place.function - 1));
    trees_.add(std::move(event), place);
    return *this;
  }

  uint64_t now_ns_ = 0;
  std::string shown_;
  CallTrees trees_;
};

constexpr uint32_t kA = 1, kB = 2, kC = 3;
constexpr uint64_t kStack = 0x7ffc00001000;

// Threads that end in the middle of a span, such as those that exit in a traced function, do not pile up.
TEST(Spans, EndsTheOldestOfTooManyOpenThreads) {
  size_t begins = 0, ends = 0, ends_before_close = 0;
  CallTrees trees({}, 4096, [&](const SpanEvent& event) { ++(event.kind == SpanKind::kEnter ? begins : ends); });
  constexpr uint32_t kThreads = 60'000;
  for (uint32_t tid = 1; tid <= kThreads; ++tid)
    trees.add({.kind = SpanKind::kEnter, .time_ns = tid, .pid = tid, .tid = tid, .name = "a"}, {.function = 1});
  ends_before_close = ends;
  trees.close(kThreads + 1);
  EXPECT_EQ(begins, kThreads);
  EXPECT_EQ(ends, kThreads);
  EXPECT_GE(ends_before_close, 20'000u);
}

// Threads without open spans are forgotten when there are many.
TEST(Spans, OpenSpansOutliveManyThreads) {
  std::string last;
  CallTrees trees({}, 4096, [&](const SpanEvent& event) { last = event.name + std::to_string(event.duration_ns); });
  const auto add = [&](SpanKind kind, uint32_t tid, uint64_t time_ns) {
    trees.add({.kind = kind, .time_ns = time_ns, .pid = 1, .tid = tid, .name = "f"}, {});
  };
  add(SpanKind::kEnter, 1, 10);
  for (uint32_t tid = 2; tid < 20'000; ++tid) {
    add(SpanKind::kEnter, tid, 20);
    add(SpanKind::kExit, tid, 21);
    ASSERT_EQ(last, "f1");
  }
  add(SpanKind::kExit, 1, 40);
  EXPECT_EQ(last, "f30");
}

TEST(Spans, CallsNest) {
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kStack - 32).leave(kB, kStack - 32).leave(kA, kStack).shown(),
            "> a\n > b\n < b 1\n< a 3\n");
}

TEST(Spans, AReturnEndsItsOwnCall) {
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kStack - 32).leave(kA, kStack).shown(),
            "> a\n > b\n < b 1 (no end)\n< a 2\n");
}

TEST(Spans, ACallAfterALongjmpEndsThoseThatItLeft) {
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kStack - 32).enter(kC, kStack).leave(kC, kStack).shown(),
            "> a\n > b\n < b 1 (no end)\n< a 2 (no end)\n> c\n< c 1\n");
}

TEST(Spans, ATailCallTakesOverTheFrame) {
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kStack, 0x7ffffffff000).leave(kB, kStack).leave(kA, kStack).shown(),
            "> a\n > b\n < b 1\n< a 3\n");
}

TEST(Spans, AnotherStackLeavesCallsAlone) {
  constexpr uint64_t kOther = kStack + (uint64_t{1} << 32);
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kOther).leave(kB, kOther).leave(kA, kStack).shown(),
            "> a\n > b\n < b 1\n< a 3\n");
}

TEST(Spans, AReturnWithoutItsEntryEndsNothing) {
  EXPECT_EQ(Calls().enter(kA, kStack).enter(kB, kStack - 8).leave(kB, kStack - 8).leave(kB, kStack - 64).shown(),
            "> a\n > b\n < b 1\n < b (no begin)\n");
}

TEST(Spans, WithoutAFrameTheInnermostCallOfTheFunctionEnds) {
  EXPECT_EQ(Calls().enter(kA, 0).enter(kB, 0).enter(kA, 0).leave(kA, 0).leave(kA, 0).shown(),
            "> a\n > b\n  > a\n  < a 1\n < b 3 (no end)\n< a 4\n");
}

TEST(Spans, OtherEndsEndWhatBeganLast) {
  EXPECT_EQ(Calls().enter(kA, kStack).end().end().shown(), "> a\n< a 1\n< - (no begin)\n");
  // A region from the entry of one function to the return of another.
  EXPECT_EQ(Calls().enter(kA, kStack).leave(kB, kStack - 64).shown(), "> a\n< a 1\n");
}

TEST(Spans, AfterLossesAFunctionDoesNotNestInItself) {
  EXPECT_EQ(Calls().enter(kA, 0).lose().enter(kA, 0).leave(kA, 0).shown(), "> a\n< a 1 (no end)\n> a\n< a 1\n");
}

TEST(Spans, TheEndOfTheRunEndsAll) {
  EXPECT_EQ(Calls().enter(kA, 0).enter(kB, 0).close(), "> a\n > b\n < b 1 (no end)\n< a 2 (no end)\n");
}

TEST(Spans, SlowCallsAreShownWithThoseAroundThem) {
  EXPECT_EQ(Calls({.slower_than_ns = 2})
                .enter(kA, 0)
                .enter(kB, 0)
                .leave(kB, 0)
                .enter(kC, 0)
                .enter(kB, 0)
                .leave(kB, 0)
                .leave(kC, 0)
                .leave(kA, 0)
                .shown(),
            "> a\n > c\n < c 3\n< a 7\n");
}

TEST(Spans, TheOrderMayHaveOthersBetween) {
  EXPECT_EQ(Calls({.order = {"a", "c"}})
                .enter(kA, 0)
                .leave(kA, 0)
                .enter(kA, 0)
                .enter(kB, 0)
                .enter(kC, 0)
                .leave(kC, 0)
                .leave(kB, 0)
                .leave(kA, 0)
                .enter(kC, 0)
                .leave(kC, 0)
                .shown(),
            "> a\n > c\n < c 1\n< a 5\n");
}

}  // namespace
}  // namespace espy::output
