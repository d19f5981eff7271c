// Where the shape of the IR is the point: what must be cheap, and what must not be there at all.
#include <algorithm>
#include <cstring>

#include "lower_support.h"

namespace espy::lower {
namespace {

using ::testing::Test;

class LowerIr : public Test {
 protected:
  testing::FakeKernel kernel_;
  std::string optimized(const std::string& text) { return Script(text, kernel_).optimized(); }
};

size_t count(const std::string& text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_F(LowerIr, CountingAScalarIsAPlainAddInThisCpusSlot) {
  const std::string ir = optimized("raw { @ = count(); }");
  EXPECT_EQ(count(ir, "map_lookup_elem"), 0u) << ir;
  EXPECT_EQ(count(ir, "atomic"), 0u) << ir;
  EXPECT_EQ(count(ir, "get_smp_processor_id"), 1u) << ir;
}

TEST_F(LowerIr, CountingAKeyUpdatesInPlaceAndInsertsZerosOnAMiss) {
  const std::string ir = optimized("raw { @[pid] = count(); }");
  EXPECT_EQ(count(ir, "map_lookup_elem"), 2u) << ir;
  EXPECT_EQ(count(ir, "map_update_elem"), 1u) << ir;
}

TEST_F(LowerIr, AnAssignedNumberIsStoredInPlaceIfItsKeyStays) {
  const auto lookups = [&](const std::string& text) { return count(optimized(text), "map_lookup_elem"); };
  EXPECT_EQ(lookups("raw { @[pid] = arg0; }"), 2u);  // the second where another CPU has added the key meanwhile
  // An element that was found could be of another key by the time of the store, or its value be seen half written.
  EXPECT_EQ(lookups("raw { @[pid] = arg0; } raw { delete(@[pid]); }"), 0u);
  EXPECT_EQ(lookups("let @ = lruhash(10); raw { @[pid] = arg0; }"), 1u);  // whether the key is new, to count it
  EXPECT_EQ(lookups("raw { @[pid] = comm; }"), 0u);
}

TEST_F(LowerIr, AnUnusedIncrementIsAtomic) {
  EXPECT_EQ(count(optimized("raw { @x = (int64)0; @x++; }"), "atomic_add"), 1u);
}

TEST_F(LowerIr, AShortConstantStringIsComparedByWords) {
  const std::string ir = optimized("raw /comm == \"bash\"/ { @ = count(); }");
  EXPECT_EQ(count(ir, "strncmp"), 0u) << ir;
  EXPECT_EQ(count(ir, "load.8 [v"), 3u) << ir;  // the exit flag, one word of the name, the counter
}

TEST_F(LowerIr, NothingIsLeftBehindAnEnd) {
  const std::string ir = optimized("raw { exit(); @[1] = 1; }");
  EXPECT_EQ(count(ir, "map_update_elem"), 0u) << ir;
}

TEST_F(LowerIr, LossesHaveACounterOfTheirOwn) {
  Script script("raw { @a[pid] = 1; @b[pid] = count(); @s = 1; }", kernel_);
  for (const std::string map : {"@a", "@b"}) {
    const auto& counters = script.lowered.program.loss_counters;
    const std::string what = "update(s) lost: " + map + " is full";
    EXPECT_EQ(std::ranges::count_if(counters, [&](const auto& each) { return each.what.starts_with(what); }), 1) << map;
  }
}

TEST_F(LowerIr, ALongStringIsInTheTailAndAShortOneInPlace) {
  Script script("raw { printf(\"%s %s\", str(arg0), comm); }", kernel_);
  const program::Program& program = script.lowered.program;
  ASSERT_EQ(program.events.size(), 1u);
  const program::EventSchema& event = program.events[program::EventId{0}];
  ASSERT_EQ(event.fields.size(), 2u);
  EXPECT_TRUE(event.fields[0].is_in_tail);
  EXPECT_FALSE(event.fields[1].is_in_tail);
  EXPECT_EQ(program.ring_slack_bytes, 4096u);
}

TEST_F(LowerIr, TheTableOfNumbersHasWiderEntriesForMoreProbesThan16BitsCount) {
  Script script("config = { max_probes = 100000 } many { @ = count(); }", kernel_);
  const program::Program& program = script.lowered.program;
  const std::string& table = program.maps[program.rodata].initial;
  ASSERT_EQ(table.size(), kManyProbes * 4u);
  uint32_t last = 0;
  std::memcpy(&last, table.data() + (kManyProbes - 1) * 4, 4);
  EXPECT_EQ(last, kManyProbes);
}

TEST_F(LowerIr, KeysCountForWhatIsAllocatedAtTheStart) {
  const auto is_preallocated = [&](const std::string& text) {
    const Script script(text, kernel_);
    const program::Program& program = script.lowered.program;
    return program.maps[program.script_maps[program::ScriptMapId{0}].map].is_preallocated;
  };
  EXPECT_TRUE(is_preallocated("raw { @[arg0] = arg1; }"));
  EXPECT_TRUE(is_preallocated("let @ = hash(16000); raw { @[str(arg0), str(arg1)] = 1; }"));
  EXPECT_FALSE(is_preallocated("let @ = hash(16000); raw { @[str(0), str(1), str(2), str(3), str(4)] = 1; }"));
  EXPECT_TRUE(is_preallocated("let @ = hash(1000000); begin { @[pid] = 1; }"));
  EXPECT_FALSE(is_preallocated("let @ = hash(2000000); begin { @[str(0)] = 1; }"));
}

TEST_F(LowerIr, WithoutEventsThereIsNoRing) {
  Script script("raw { @ = count(); }", kernel_);
  EXPECT_FALSE(script.lowered.program.ring.valid());
  EXPECT_EQ(script.lowered.program.ring_bytes, 0u);
}

}  // namespace
}  // namespace espy::lower
