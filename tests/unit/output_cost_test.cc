// What probes cost, as a table and in JSON; maps that have not seen all events.
#include <gtest/gtest.h>

#include "output/loss_report.h"
#include "output_support.h"

namespace espy::output {
namespace {

CostReport report() {
  CostReport out;
  out.seconds = 2;
  ProgramCost one;
  one.probes = {{"uprobe:/bin/app:work", 400}};
  one.events = one.runs = 200;
  one.ns_per_run = 93;
  one.hook_ns = 412.4;
  one.cpus = 0.094;
  one.map_bytes = 8192;
  ProgramCost two;
  two.probes = {{"tracepoint:a:b", 0}, {"tracepoint:a:c", 8}};
  two.events = two.runs = 4;
  two.cpus = 0.0001;
  out.programs = {one, two};
  out.map_bytes = 20 << 20;
  out.tracer_cpus = 0.0012;
  out.tracer_bytes = 4 << 20;
  out.measuring = {true, 10, 0.1, 29, 0.0006};
  return out;
}

TEST(Losses, SentencesBeginWithTheirNumber) {
  EXPECT_EQ(counted(1, "stack(s) lost"), "1 stack lost");
  EXPECT_EQ(counted(3, "process(es) ended, with file(s)"), "3 processes ended, with files");
}

TEST(Cost, IsATable) {
  EXPECT_EQ(to_text(report()),
            "cost of probe               events/s      runs/s    ns/run   hook ns       CPU        maps\n"
            "uprobe:/bin/app:work             200         200        93       412      9.4%       8 KiB\n"
            "2 probes of one program          4.0         4.0         -         -     0.01%       0 KiB\n"
            "  tracepoint:a:c                 4.0\n"
            "  1 others                       0.0\n"
            "all                                                                       9.4%      20 MiB\n"
            "espy itself: 0.12% of a CPU, 4096 KiB\n"
            "timed in 10 windows, 5.0% of 2.0 s, by the kernel; 29 ns of ns/run are the timing, which took 0.06% of a "
            "CPU\n");
  EXPECT_EQ(to_text(CostReport()), "");
}

TEST(Cost, IsARecordInJson) {
  const std::string line = shown("json", [](Sink& sink) { sink.cost(report()); });
  EXPECT_TRUE(
      line.starts_with(R"({"type": "cost", "data": {"seconds": 2.000, "cpus": 0.094100, "map_bytes": 20971520, )"))
      << line;
  EXPECT_NE(
      line.find(R"({"probes": {"uprobe:/bin/app:work": 400}, "events_per_second": 200.0, "runs_per_second": 200.0, )"
                R"("ns_per_run": 93.0, "hook_ns": 412.4, "cpus": 0.094000, "map_bytes": 8192})"),
      line.npos)
      << line;
  EXPECT_NE(line.find(R"("ns_per_run": null, "hook_ns": null)"), line.npos) << line;
}

TEST(Cost, MapsSayWhichShareOfTheEventsTheyHaveSeen) {
  MapView view = scalar("@", number(7));
  view.seen_share = 0.123;
  EXPECT_EQ(shown("text", [&](Sink& sink) { sink.map(view); }), "@: 7 (sampled 12%)\n");
  EXPECT_EQ(shown("json", [&](Sink& sink) { sink.map(view); }),
            "{\"type\": \"map\", \"sampled\": 0.1230, \"data\": {\"@\": 7}}\n");
}

}  // namespace
}  // namespace espy::output
