// Profiles for pprof: what is in the message, read by another reader of protobuf. `go tool pprof` reads them in
// tests/live/pprof.bt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <protozero/pbf_reader.hpp>

#include "base/strings.h"
#include "output_support.h"

namespace espy::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string inflated(const std::string& bytes) {
  std::string out(1 << 20, '\0');
  z_stream stream = {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

struct Profile {
  std::vector<std::string> texts;
  std::vector<std::string> types;  // "TYPE/UNIT"
  std::vector<std::vector<int64_t>> samples;
  std::vector<std::vector<uint64_t>> stacks;
  std::vector<std::string> labels;  // "KEY=TEXT" or "KEY=NUMBER UNIT"
  size_t locations = 0, mappings = 0;
  std::vector<size_t> lines;  // of each location
};

// The fields with numbers, those of the same number as the last one.
std::map<uint32_t, int64_t> numbers_of(protozero::pbf_reader message) {
  std::map<uint32_t, int64_t> out;
  while (message.next()) {
    if (message.wire_type() == protozero::pbf_wire_type::varint)
      out[message.tag()] = message.get_int64();
    else
      message.skip();
  }
  return out;
}

template <class T>
std::vector<T> packed(protozero::pbf_reader message, uint32_t tag) {
  std::vector<T> out;
  while (message.next(tag))
    for (const auto value : message.get_packed_int64()) out.push_back(static_cast<T>(value));
  return out;
}

Profile parse(const std::string& bytes) {
  const std::string raw = inflated(bytes);
  Profile out;
  for (protozero::pbf_reader at(raw); at.next(6);) out.texts.push_back(at.get_string());
  const auto text = [&](int64_t index) { return out.texts.at(static_cast<size_t>(index)); };
  for (protozero::pbf_reader at(raw); at.next(1);) {
    auto type = numbers_of(at.get_message());
    out.types.push_back(text(type[1]) + "/" + text(type[2]));
  }
  for (protozero::pbf_reader at(raw); at.next(2);) {
    const protozero::pbf_reader sample = at.get_message();
    out.samples.push_back(packed<int64_t>(sample, 2));
    out.stacks.push_back(packed<uint64_t>(sample, 1));
    for (protozero::pbf_reader each = sample; each.next(3);) {
      auto label = numbers_of(each.get_message());
      out.labels.push_back(text(label[1]) + "=" +
                           (label[2] != 0 ? text(label[2]) : std::to_string(label[3]) + " " + text(label[4])));
    }
  }
  for (protozero::pbf_reader at(raw); at.next(4); ++out.locations) {
    size_t lines = 0;
    for (protozero::pbf_reader each = at.get_message(); each.next(4); ++lines) each.skip();
    out.lines.push_back(lines);
  }
  for (protozero::pbf_reader at(raw); at.next(3); ++out.mappings) at.skip();
  return out;
}

Value stack(bool is_user, const std::vector<Frame>& inner_first) {
  StackValue out;
  out.is_user = is_user;
  out.frames = shared(inner_first);
  return {std::move(out)};
}

Frame frame(uint64_t address, std::string symbol, bool is_inlined = false) {
  Frame out{address, std::move(symbol), 3, "/usr/bin/x", {}};
  out.module_address = address;
  out.is_inlined = is_inlined;
  return out;
}

Profile profile(const std::vector<MapView>& views) {
  return parse(shown("pprof", [&](Sink& sink) {
    for (const MapView& view : views) sink.map(view);
    sink.finish();
  }));
}

MapView map_of(std::string_view name, types::Kind kind, Value key, Value value) {
  MapView view = keyed(name, {{std::move(key), std::move(value)}});
  view.kind = kind;
  return view;
}

TEST(Pprof, MapsWithEqualKeysAreTypesOfOneSample) {
  const Value key = stack(true, {frame(16, "leaf"), frame(32, "main")});
  const Profile out = profile({map_of("@calls", types::Kind::kCount, key, {int64_t{3}}),
                               map_of("@read_bytes", types::Kind::kSum, key, {int64_t{500}})});
  EXPECT_THAT(out.types, ElementsAre("calls/count", "read_bytes/bytes"));
  EXPECT_THAT(out.samples, ElementsAre(ElementsAre(3, 500)));
  EXPECT_EQ(out.stacks.at(0).size(), 2U);
  EXPECT_EQ(out.mappings, 1U);
}

TEST(Pprof, OtherKeysAreSamplesOfTheirOwn) {
  const Profile out = profile({map_of("@a", types::Kind::kCount, stack(true, {frame(16, "leaf")}), {int64_t{3}}),
                               map_of("@b", types::Kind::kCount, stack(false, {frame(48, "vfs_read")}), {int64_t{4}})});
  EXPECT_THAT(out.samples, ::testing::UnorderedElementsAre(ElementsAre(3, 0), ElementsAre(0, 4)));
}

TEST(Pprof, InlinedFunctionsAreLinesOfOneLocation) {
  const Profile out =
      profile({map_of("@", types::Kind::kCount,
                      stack(true, {frame(16, "in", true), frame(16, "mid", true), frame(16, "out"), frame(32, "main")}),
                      {int64_t{1}})});
  EXPECT_EQ(out.stacks.at(0).size(), 2U);
  EXPECT_THAT(out.lines, ::testing::UnorderedElementsAre(3, 1));
  EXPECT_THAT(out.types, ElementsAre("samples/count"));
}

TEST(Pprof, TheRestOfTheKeyIsLabels) {
  MapView view =
      map_of("@", types::Kind::kCount,
             tuple({stack(true, {frame(16, "f")}), string("cat"), number(7), number(9), string("x")}), {int64_t{1}});
  const std::vector<std::string> names = {"ustack", "comm", "tid", "wait_ns", "\"text\""};
  view.key_names = names;
  EXPECT_THAT(profile({view}).labels, ElementsAre("comm=cat", "tid=7 count", "wait_ns=9 nanoseconds", "key5=x"));
}

TEST(Pprof, SamplesOfATimerAreTimeToo) {
  MapView view = map_of("@", types::Kind::kCount, stack(true, {frame(16, "f")}), {int64_t{5}});
  view.sampled = {"cpu", "nanoseconds", 1000};
  const Profile out = profile({view});
  EXPECT_THAT(out.types, ElementsAre("samples/count", "cpu/nanoseconds"));
  EXPECT_THAT(out.samples, ElementsAre(ElementsAre(5, 5000)));
}

TEST(Pprof, TypesOfSeveralMapsDiffer) {
  const Value key = stack(true, {frame(16, "f")});
  MapView a = map_of("@a", types::Kind::kCount, key, {int64_t{5}});
  MapView b = map_of("@b", types::Kind::kCount, key, {int64_t{7}});
  a.sampled = b.sampled = {"cpu", "nanoseconds", 1000};
  EXPECT_THAT(profile({a, b}).types, ElementsAre("a/count", "cpu/nanoseconds", "b/count", "b_cpu/nanoseconds"));
}

TEST(Pprof, AveragesAreCountAndTotal) {
  const Profile out = profile({map_of("@t_us", types::Kind::kAvg, stack(true, {frame(16, "f")}),
                                      {StatsValue{.count = 4, .is_signed = true, .total = 10, .only_average = true}})});
  EXPECT_THAT(out.types, ElementsAre("t_us_count/count", "t_us/microseconds"));
  EXPECT_THAT(out.samples, ElementsAre(ElementsAre(4, 10)));
}

TEST(Pprof, ZerosAndMapsWithoutStacksAreLeftOut) {
  const Profile out = profile({map_of("@a", types::Kind::kSum, stack(true, {frame(16, "f")}), {int64_t{-5}}),
                               map_of("@b", types::Kind::kCount, string("x"), {int64_t{5}})});
  EXPECT_THAT(out.samples, IsEmpty());
  EXPECT_THAT(out.types, ElementsAre("a/count"));
}

TEST(Pprof, NamesOfOthersAreTextForTerminals) {
  Frame hostile = frame(16, "f\x1b[2J\xff");
  hostile.module = "/tmp/\n\xc0x";
  const Profile out = profile({map_of("@", types::Kind::kCount, stack(true, {hostile}), {int64_t{1}})});
  for (const std::string& text : out.texts) EXPECT_EQ(text, printable_line(text));
  EXPECT_THAT(out.texts, ::testing::Contains("f\\x1b[2J\\xff"));
}

}  // namespace
}  // namespace espy::output
