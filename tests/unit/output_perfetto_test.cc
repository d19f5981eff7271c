// Traces in Perfetto's format: times and texts of packets. protoc reads those of tests/live/perfetto.bt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <protozero/pbf_reader.hpp>

#include "output/perfetto.h"
#include "output_support.h"

namespace espy::output {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kEvent = 11, kInterned = 12, kDescriptor = 60;

std::string inflated(const std::string& bytes) {
  std::string out(1 << 20, '\0');
  uLongf size = out.size();
  EXPECT_EQ(::uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                         bytes.size()),
            Z_OK);
  out.resize(size);
  return out;
}

std::vector<std::string> packets_of(const std::string& trace) {
  std::vector<std::string> out;
  for (protozero::pbf_reader part(trace); part.next(1);) {
    protozero::pbf_reader packet = part.get_message();
    EXPECT_TRUE(packet.next(50));
    const std::string inner = inflated(packet.get_string());
    for (protozero::pbf_reader at(inner); at.next(1);) out.push_back(at.get_string());
  }
  return out;
}

uint64_t number(const std::string& message, uint32_t tag, uint64_t otherwise = 0) {
  for (protozero::pbf_reader at(message); at.next(tag);) return at.get_uint64();
  return otherwise;
}

std::string text(const std::string& message, uint32_t tag) {
  for (protozero::pbf_reader at(message); at.next(tag);) return at.get_string();
  return "";
}

TEST(Perfetto, TimesAreDifferencesAndAbsoluteWhereTheyGoBack) {
  PerfettoPackets packets;
  packets.begin(1000, 5000);
  for (const uint64_t time_ns : {1500, 1700, 1600, 1800}) packets.add_counter(time_ns, 1, 7);
  const auto all = packets_of(packets.take(true));
  ASSERT_EQ(all.size(), 5U);
  std::vector<std::pair<uint64_t, uint64_t>> times;  // with the clock; 0: the default one
  for (size_t i = 1; i < all.size(); ++i) times.emplace_back(number(all[i], 8), number(all[i], 58));
  EXPECT_THAT(times, ElementsAre(std::pair(500, 0), std::pair(200, 0), std::pair(1600, 6), std::pair(100, 0)));
}

TEST(Perfetto, TextsAreWrittenOnce) {
  PerfettoPackets packets;
  packets.begin(0, 0);
  for (int i = 0; i < 2; ++i) {
    packets.begin_event(TrackEventType::kInstant, 1, "name");
    packets.add_argument("path", {StringValue{"/etc/hosts"}}, {});
    packets.end_event(5);
  }
  const auto all = packets_of(packets.take(true));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(text(text(text(all[1], kInterned), 2), 2), "name");
  EXPECT_EQ(text(all[2], kInterned), "");
  EXPECT_EQ(text(all[1], kEvent), text(all[2], kEvent));
}

TEST(Perfetto, LongTextsAreInline) {
  PerfettoPackets packets;
  packets.begin(0, 0);
  packets.begin_event(TrackEventType::kInstant, 1, std::string(1000, 'x'));
  packets.end_event(5);
  EXPECT_EQ(text(text(packets_of(packets.take(true)).at(1), kEvent), 23), std::string(1000, 'x'));
}

TEST(Perfetto, PartsAreWrittenWhenTheyAreLarge) {
  PerfettoPackets packets;
  packets.begin(0, 0);
  EXPECT_EQ(packets.take(false), "");
  for (uint64_t i = 0; i < 10'000; ++i) packets.add_counter(i, 1, 7);
  EXPECT_EQ(packets_of(packets.take(false)).size(), 10'001U);
  EXPECT_EQ(packets.take(true), "");
}

TEST(Perfetto, NamesOfOthersAreUtf8) {
  const int fd = ::memfd_create("trace", 0);
  {
    Writer out(fd, Buffering::kFull);
    const auto sink = make_perfetto_sink(out, {}, Quiet::kYes);
    sink->begin(run_info());
    SpanEvent event;
    event.time_ns = 5;
    event.pid = event.tid = 7;
    event.comm = "co\xffmm\n";
    event.name = event.text = "n\xc3";
    event.arguments.emplace_back("a\x80", Value{StringValue{"v\xfe"}});
    sink->span(event);
    sink->map(scalar("@x", {int64_t{5}}));
    sink->finish();
  }
  const auto all = packets_of(read_all(fd));
  ::close(fd);
  std::string names;
  for (const std::string& packet : all)
    if (const std::string descriptor = text(packet, kDescriptor); !descriptor.empty())
      names += text(text(descriptor, 3), 6) + text(text(descriptor, 4), 5) + text(descriptor, 2) + ";";
  EXPECT_EQ(names, "co\\xffmm\\x0a;co\\xffmm\\x0a;@x;");
  const std::string interned = text(all.at(3), kInterned);
  EXPECT_EQ(text(text(interned, 2), 2), "n\\xc3");
  EXPECT_EQ(text(text(interned, 3), 2), "a\\x80");
  EXPECT_EQ(text(text(interned, 29), 2), "v\\xfe");
  EXPECT_EQ(number(text(all.back(), kEvent), 30), 5U);
}

}  // namespace
}  // namespace espy::output
