#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "recording/encoding.h"
#include "recording/reader.h"
#include "recording/writer.h"

namespace espy::recording {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RecordingTest : public testing::Test {
 protected:
  RecordingTest() {
    char path[] = "/tmp/recording.XXXXXX";
    ::close(::mkstemp(path));
    path_ = path;
  }
  ~RecordingTest() override { ::unlink(path_.c_str()); }

  static Description description() {
    Description out;
    out.espy_version = "0.1";
    out.command = "espy record -o x tracepoint:a:b";
    out.arch = "some";
    out.page_size_bytes = 4096;
    out.cpu_count = 4;
    out.started_ns = 1'000;
    out.types = {{.kind = TypeKind::kInt, .is_signed = true, .size_bytes = 4, .align_bytes = 4},
                 {.kind = TypeKind::kPointer, .is_user_space = true, .size_bytes = 8, .align_bytes = 8, .element = 2},
                 {.kind = TypeKind::kStruct,
                  .is_complete = true,
                  .size_bytes = 16,
                  .align_bytes = 8,
                  .name = "node",
                  .members = {{"next", 1, 0, 0}, {"flag", 0, 64, 3}}},
                 {.kind = TypeKind::kEnum, .size_bytes = 4, .name = "color", .enumerators = {{"RED", -1}}}};
    out.layouts = {{.fields = {{.kind = FieldKind::kNumber, .name = "fd", .type = 0, .shown = "int fd"},
                               {.kind = FieldKind::kText,
                                .role = FieldRole::kMemory,
                                .name = "path",
                                .pointer_in = 0,
                                .offset_bytes = 8}},
                    .points_to_user_space = true},
                   {.fields = {{.kind = FieldKind::kStack, .role = FieldRole::kUserStack, .name = "ustack"},
                               {.kind = FieldKind::kNothing, .name = "lost"},
                               {.kind = FieldKind::kNothing, .role = FieldRole::kLocal, .name = "count"},
                               {.kind = FieldKind::kNothing, .role = FieldRole::kValue, .name = "reg(\"ip\")"},
                               {.kind = FieldKind::kNothing, .role = FieldRole::kNamed, .name = "usym(arg0)"}},
                    .has_kernel_names = true,
                    .has_user_names = true}};
    out.probes = {{"tracepoint", "tracepoint:a:b", {"a", "b"}, "a:*", "a", "b", 0},
                  {"tracepoint", "tracepoint:a:c", {"a", "c"}, "a:*", "a", "c", 1}};
    return out;
  }
  static Task task(uint32_t tid) { return {tid, tid, 0, 0, 7, "cat", {{1, "init"}, {0, "swapper"}}}; }

  // `count` events of the first probe, a microsecond apart from 1'000 ns on.
  static void write_events(Writer& writer, int count) {
    for (int i = 0; i < count; ++i) {
      writer.begin_event(0, 1'000 + uint64_t(i) * 1'000, uint32_t(i % 4), task(uint32_t(10 + i % 3)));
      writer.add_number(i % 2 == 0 ? i : -i);
      writer.add_text("/etc/passwd" + std::to_string(i % 100));
      ASSERT_TRUE(writer.end_event());
    }
  }

  std::string content() { return *read_file(path_); }
  void set_content(const std::string& bytes) {
    const OwnedFd file(::open(path_.c_str(), O_WRONLY | O_TRUNC));
    ASSERT_TRUE(write_all(file.get(), bytes));
  }

  struct Block {
    BlockHeader header;
    std::string payload;
  };
  // A file with these blocks behind its description.
  void set_blocks(const std::vector<Block>& blocks) {
    ASSERT_TRUE(Writer::create(path_, description()));
    std::string bytes = content();
    for (auto [header, payload] : blocks) {
      const std::string stored = compress(payload, header);
      const auto head = encode(header);
      bytes += std::string(head.data(), head.size()) + stored;
    }
    set_content(bytes);
  }
  // An address with frames that have no names.
  static std::string place(uint64_t address, size_t frames) {
    std::string out;
    for (const uint64_t number : {kPlaceTag, uint64_t{7}, uint64_t{0}, address, uint64_t{frames}})
      append_uleb128(out, number);
    return out + std::string(7 * frames, '\0');
  }

  static size_t count_events(Reader& reader) {
    Event event;
    size_t out = 0;
    while (reader.next(event)) ++out;
    return out;
  }

  std::string path_;
};

// Blocks of a whole recording in another order, or a number.
TEST_F(RecordingTest, BlocksThatAreMissingOrDoubleAreReported) {
  auto writer = Writer::create(path_, description());
  ASSERT_TRUE(writer);
  for (int i = 0; i < 3; ++i) {
    write_events(*writer, 10);
    ASSERT_TRUE(writer->flush());
  }
  ASSERT_TRUE(writer->finish(99'000));
  const std::string whole = content();
  std::vector<std::string> blocks;  // the description, three of events, the end
  for (size_t at = kFileHeaderBytes; at < whole.size(); at += blocks.back().size()) {
    const auto header = decode_header(whole.substr(at));
    ASSERT_TRUE(header);
    EXPECT_EQ(header->number, blocks.size() + 1);
    blocks.push_back(whole.substr(at, kBlockHeaderBytes + header->stored_bytes));
  }
  ASSERT_EQ(blocks.size(), 5u);
  const auto read = [&](std::initializer_list<size_t> order) {
    std::string bytes = whole.substr(0, kFileHeaderBytes);
    for (const size_t number : order) bytes += blocks[number];
    set_content(bytes);
    auto reader = Reader::open(path_);
    const size_t events = reader ? count_events(*reader) : 0;
    return std::pair(events, reader ? reader->damages() : std::vector<std::string>());
  };
  using testing::ElementsAre;
  using testing::HasSubstr;
  EXPECT_EQ(read({0, 1, 2, 3, 4}), std::pair(size_t{30}, std::vector<std::string>()));
  EXPECT_EQ(read({0, 2, 3, 4}).first, 20u);
  EXPECT_THAT(read({0, 2, 3, 4}).second, ElementsAre(HasSubstr("blocks that are missing before byte")));
  EXPECT_EQ(read({0, 1, 1, 2, 3, 4}).first, 30u);
  EXPECT_THAT(read({0, 1, 1, 2, 3, 4}).second, ElementsAre(HasSubstr("does not belong there: 10 events skipped")));
  EXPECT_EQ(read({0, 1, 2, 3, 4, 2}).first, 30u);
  EXPECT_THAT(read({0, 1, 2, 3, 4, 2}).second, ElementsAre(HasSubstr("does not belong there")));
}

TEST_F(RecordingTest, GivesBackWhatWasWritten) {
  auto writer = Writer::create(path_, description());
  ASSERT_TRUE(writer) << writer.error().message;
  writer->begin_event(0, 5'000, 3, task(10));
  writer->add_number(-100);
  writer->add_text("/etc/passwd");
  ASSERT_TRUE(writer->end_event());
  writer->note_lost(12);
  writer->note_place({10, false, 0x1000}, [] { return std::vector{Frame{.symbol = "compare"}}; });
  Task renamed = task(10);
  renamed.comm = "dog";
  writer->begin_event(1, 4'000, 0, renamed);  // another CPU's, a little earlier
  writer->add_stack(0);
  ASSERT_TRUE(writer->end_event());
  const std::vector<std::string> incomplete = {"16 memory reads failed", "2 stacks lost"};
  ASSERT_TRUE(writer->finish(9'000, incomplete));

  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->description(), description());
  Event event;
  ASSERT_TRUE(reader->next(event));
  EXPECT_EQ(event.probe, 0U);
  EXPECT_EQ(event.time_ns, 5'000U);
  EXPECT_EQ(event.cpu, 3U);
  EXPECT_EQ(*event.task, task(10));
  ASSERT_EQ(event.values.size(), 2U);
  EXPECT_EQ(event.values[0].number, -100);
  EXPECT_EQ(event.values[1].text, "/etc/passwd");
  ASSERT_TRUE(reader->next(event));
  EXPECT_EQ(event.probe, 1U);
  EXPECT_EQ(event.time_ns, 4'000U);
  EXPECT_EQ(event.task->comm, "dog");
  EXPECT_FALSE(reader->next(event));
  const auto named = reader->names().find({10, false, 0x1000});
  ASSERT_NE(named, reader->names().end());
  EXPECT_EQ(named->second.front().symbol, "compare");
  EXPECT_EQ(reader->lost_count(), 12U);
  EXPECT_EQ(reader->last_ns(), 9'000U);
  EXPECT_TRUE(reader->is_complete());
  EXPECT_EQ(reader->incomplete(), incomplete);
  EXPECT_THAT(reader->damages(), ElementsAre());
}

// Each block has the stacks of its events, and the names of their addresses.
TEST_F(RecordingTest, GivesBackStacks) {
  auto writer = Writer::create(path_, description());
  const std::vector<Place> stack = {{10, false, 0x1000}, {10, true, 0x2000}};
  const std::vector<std::vector<Frame>> names = {
      {{.symbol = "inlined", .file = "a.c", .line = 3, .is_inlined = true}, {.symbol = "leaf", .offset = 4}},
      {{.module = "/bin/x", .module_address = 0x20, .has_module_address = true}}};
  for (int i = 0; i < 4; ++i) {
    const auto of = [&](size_t index) { return names[index]; };
    const uint64_t noted = writer->note_stack(std::span(stack).subspan(i % 2 == 0 ? 0 : 1), of);
    writer->begin_event(1, 5'000, 0, task(10));
    writer->add_stack(noted);
    ASSERT_TRUE(writer->end_event());
    if (i != 1) continue;
    ASSERT_TRUE(writer->flush());
  }
  ASSERT_TRUE(writer->finish(9'000));
  auto reader = Reader::open(path_);
  Event event;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(reader->next(event));
    const std::vector<uint64_t> addresses(event.values[0].stack.begin(), event.values[0].stack.end());
    EXPECT_EQ(addresses, i % 2 == 0 ? std::vector<uint64_t>({0x1000, 0x2000}) : std::vector<uint64_t>({0x2000}));
  }
  EXPECT_FALSE(reader->next(event));
  EXPECT_THAT(reader->damages(), ElementsAre());
  EXPECT_EQ(reader->names().at(stack[0]), names[0]);
  EXPECT_EQ(reader->names().at(stack[1]), names[1]);
}

// Indexes that lead nowhere.
TEST_F(RecordingTest, RefusesDescriptionsThatMakeNoSense) {
  const auto is_refused = [](const auto& change) {
    Description wrong = description();
    change(wrong);
    return !decode_description(encode(wrong)).has_value();
  };
  EXPECT_FALSE(is_refused([](Description&) {}));
  EXPECT_TRUE(is_refused([](Description& d) { d.probes[0].layout = 2; }));
  EXPECT_TRUE(is_refused([](Description& d) { d.types[1].element = 4; }));
  EXPECT_TRUE(is_refused([](Description& d) { d.types[2].members[0].type = 9; }));
  EXPECT_TRUE(is_refused([](Description& d) { d.layouts[0].fields[0].type = 4; }));
  EXPECT_TRUE(is_refused([](Description& d) { d.layouts[0].fields[1].pointer_in = 1; }));
  EXPECT_TRUE(is_refused([](Description& d) { d.layouts[1].fields[0].kind = FieldKind::kNumber; }));
}

// Bytes that compress well, and take many times their size in memory.
TEST_F(RecordingTest, LimitsTheMemoryOfADescription) {
  const auto is_refused = [](size_t enums, size_t enumerators) {
    std::string item("\4\0\4\1\0\0\0\0", 8), bytes = encode(description());
    item += std::string(2 * enumerators, '\0');
    for (size_t i = 0; i < enums; ++i) {
      append_uleb128(bytes, 10);
      append_text(bytes, item);
    }
    return !decode_description(bytes).has_value();
  };
  EXPECT_FALSE(is_refused(1'000, 100));
  EXPECT_FALSE(is_refused(1, 1'000'000));
  EXPECT_TRUE(is_refused(1, 3'000'000));
  EXPECT_TRUE(is_refused(100, 100'000));
}

TEST_F(RecordingTest, ReadsEveryEventOfManyBlocks) {
  auto writer = Writer::create(path_, description());
  write_events(*writer, 100'000);
  ASSERT_TRUE(writer->finish(9'000));
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader);
  Event event;
  int i = 0;
  while (reader->next(event)) {
    ASSERT_EQ(event.time_ns, 1'000 + uint64_t(i) * 1'000);
    ASSERT_EQ(event.values[0].number, i % 2 == 0 ? i : -i);
    ++i;
  }
  EXPECT_EQ(i, 100'000);
}

TEST_F(RecordingTest, SelectsByTime) {
  auto writer = Writer::create(path_, description());
  write_events(*writer, 100'000);
  ASSERT_TRUE(writer->finish(9'000));
  auto reader = Reader::open(path_);
  reader->select_time(50'000'000, 50'999'999);
  Event event;
  ASSERT_TRUE(reader->next(event));
  EXPECT_EQ(event.time_ns, 50'000'000U);
  EXPECT_EQ(count_events(*reader), 999U);
}

// As a run that is killed leaves it: the file may end anywhere.
TEST_F(RecordingTest, ReadsWholeBlocksOfAFileThatWasCutOff) {
  auto writer = Writer::create(path_, description());
  std::vector<uint64_t> ends;  // of blocks
  for (int block = 0; block < 3; ++block) {
    write_events(*writer, 5);
    ASSERT_TRUE(writer->flush());
    ends.push_back(writer->file_bytes());
  }
  ASSERT_TRUE(writer->finish(9'000));
  const std::string whole = content();
  for (size_t size = 0; size < whole.size(); ++size) {
    set_content(whole.substr(0, size));
    auto reader = Reader::open(path_);
    const size_t blocks = static_cast<size_t>(std::ranges::count_if(ends, [&](uint64_t end) { return end <= size; }));
    if (!reader) {
      ASSERT_EQ(blocks, 0U) << reader.error().message;
      continue;
    }
    ASSERT_EQ(count_events(*reader), 5 * blocks);
    ASSERT_FALSE(reader->is_complete());
    ASSERT_THAT(reader->damages(), ElementsAre());
  }
}

TEST_F(RecordingTest, LeavesOutADamagedBlock) {
  auto writer = Writer::create(path_, description());
  write_events(*writer, 5);
  ASSERT_TRUE(writer->flush());
  const uint64_t second = writer->file_bytes();
  write_events(*writer, 7);
  ASSERT_TRUE(writer->flush());
  write_events(*writer, 9);
  ASSERT_TRUE(writer->finish(9'000));
  std::string bytes = content();
  bytes[second + kBlockHeaderBytes + 3] ^= 0x40;
  set_content(bytes);
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader);
  EXPECT_EQ(count_events(*reader), 14U);
  EXPECT_THAT(reader->damages(), ElementsAre(HasSubstr("its checksum does not match: 7 events skipped")));
  EXPECT_TRUE(reader->is_complete());

  bytes[second + 3] ^= 0x40;  // the header
  set_content(bytes);
  reader = Reader::open(path_);
  EXPECT_EQ(count_events(*reader), 5U);
  EXPECT_THAT(reader->damages(), ElementsAre(HasSubstr("espy skipped the rest of the file")));
}

// Payloads with right checksums, as a hostile file has them.
TEST_F(RecordingTest, RefusesContentThatMakesNoSense) {
  const auto read = [&](const std::string& payload) {
    set_blocks({{{.event_count = 3}, payload}});
    auto reader = Reader::open(path_);
    EXPECT_EQ(count_events(*reader), 0U);
    return reader->damages();
  };
  std::string no_such_probe, no_such_task, no_such_place, long_text;
  append_uleb128(no_such_probe, kFirstProbeTag + 2);
  append_uleb128(no_such_task, kFirstProbeTag);
  no_such_task += std::string(4, '\0');
  append_uleb128(no_such_place, kStackTag);
  no_such_place += std::string("\1\0", 2);
  long_text = std::string("\0\1\1\1\1\1", 6) + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\1";
  const std::string many_parents = std::string("\0\1\1\1\1\1\1a\x41", 9) + std::string(2 * 65, '\0');
  const std::string many_frames = place(1, kMaxFrames + 1);
  // Each takes little in the file, and many times its size in memory.
  std::string stacks, tasks;
  append_uleb128(stacks, kStackTag);
  append_uleb128(stacks, 12 << 20);
  stacks = place(1, 0) + stacks + std::string(12 << 20, '\0');
  for (int i = 0; i < 100'000; ++i) tasks += std::string("\0\1\1\1\1\1\1a\x40", 9) + std::string(2 * 64, '\0');
  for (const std::string& payload : {no_such_probe, no_such_task, no_such_place, long_text, many_parents, many_frames,
                                     stacks, tasks, std::string("\xff")})
    EXPECT_THAT(read(payload), ElementsAre(HasSubstr("its content makes no sense: 3 events skipped")));
}

TEST_F(RecordingTest, TakesTheMostFramesThatAPlaceCanHave) {
  set_blocks({{{}, place(1, kMaxFrames)}, {{.kind = BlockKind::kEnd}, ""}});
  auto reader = Reader::open(path_);
  EXPECT_EQ(count_events(*reader), 0U);
  EXPECT_EQ(reader->names().at({7, false, 1}).size(), kMaxFrames);
  EXPECT_THAT(reader->damages(), ElementsAre());
}

// A file of a few hundred KiB, whose names would take a GiB.
TEST_F(RecordingTest, LimitsTheMemoryOfNames) {
  std::string names;
  for (uint64_t i = 0; i < 120'000; ++i) names += place(i, kMaxFrames);
  auto writer = Writer::create(path_, description());
  const uint64_t description_end = writer->file_bytes();
  write_events(*writer, 5);
  ASSERT_TRUE(writer->flush());
  const std::string events = content().substr(description_end);
  set_blocks({{{}, names}});
  ASSERT_LT(content().size(), 1'000'000U);
  set_content(content() + events);
  auto reader = Reader::open(path_);
  EXPECT_EQ(count_events(*reader), 5U);
  EXPECT_GT(reader->names().size(), 10'000U);
  EXPECT_LT(reader->names().size(), 60'000U);
  EXPECT_TRUE(reader->names().contains({7, false, 0}));
  EXPECT_FALSE(reader->names().contains({7, false, 119'999}));
  EXPECT_THAT(reader->damages(), ElementsAre(HasSubstr("the names of its addresses take too much memory")));
}

// Each block has the names of its addresses again: they count once.
TEST_F(RecordingTest, TakesEqualNamesAnyNumberOfTimes) {
  std::string names;
  for (uint64_t i = 0; i < 2'000; ++i) names += place(i, kMaxFrames);
  set_blocks(std::vector<Block>(40, {{}, names}));
  auto reader = Reader::open(path_);
  EXPECT_EQ(count_events(*reader), 0U);
  EXPECT_EQ(reader->names().size(), 2'000U);
  EXPECT_THAT(reader->damages(), ElementsAre());
}

// Timers of a script would expire for centuries.
TEST_F(RecordingTest, RefusesTimesThatAreTooFarAway) {
  constexpr uint64_t kYear = 365ULL * 24 * 3600 * 1'000'000'000;
  const auto event_at = [](uint64_t time_ns) {
    std::string out("\0\1\1\1\1\1\1a\0\4", 10);
    append_sleb128(out, static_cast<int64_t>(time_ns));
    return out + std::string("\0\0\1\0", 4);
  };
  for (const uint64_t time_ns : {11 * kYear, uint64_t{1} << 63, UINT64_MAX}) {
    set_blocks({{{.event_count = 1}, event_at(5'000)},
                {{.event_count = 1}, event_at(time_ns)},
                {{.last_ns = time_ns}, ""},
                {{.kind = BlockKind::kEnd, .last_ns = time_ns}, ""}});
    auto reader = Reader::open(path_);
    reader->tell_times();
    EXPECT_EQ(count_events(*reader), 1U);
    EXPECT_LT(reader->last_ns(), kYear);
    EXPECT_TRUE(reader->is_complete());
    EXPECT_THAT(reader->damages(), ElementsAre(HasSubstr("its content makes no sense: 1 events skipped"),
                                               HasSubstr("its time makes no sense: 0 events skipped"),
                                               HasSubstr("its time makes no sense: 0 events skipped")));
  }
  set_blocks({{{.event_count = 1}, event_at(9 * kYear)}, {{.kind = BlockKind::kEnd, .last_ns = 9 * kYear}, ""}});
  auto reader = Reader::open(path_);
  EXPECT_EQ(count_events(*reader), 1U);
  EXPECT_EQ(reader->last_ns(), 9 * kYear);
  EXPECT_THAT(reader->damages(), ElementsAre());
}

// A reader waits at the end of what was written, and gets the times that the writer marks.
TEST_F(RecordingTest, FollowsAFileThatIsBeingWritten) {
  auto writer = Writer::create(path_, description());
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader);
  int waits = 0;
  reader->tell_times();
  reader->follow([&] {
    ++waits;
    bool is_written = true;  // at the third one there is nothing yet
    if (waits == 1) is_written = writer->mark_time(70'000).has_value();
    if (waits == 2) write_events(*writer, 2);
    if (waits == 2) is_written = writer->flush().has_value();
    if (waits == 4) is_written = writer->finish(90'000).has_value();
    EXPECT_TRUE(is_written);
    return waits < 4;
  });
  std::vector<uint64_t> times;
  Event event;
  while (reader->next(event)) {
    if (reader->is_paused()) continue;
    times.push_back(event.time_ns);
    EXPECT_EQ(event.task == nullptr, event.time_ns == 70'000);
  }
  EXPECT_THAT(times, ElementsAre(70'000, 1'000, 2'000));
  EXPECT_EQ(waits, 4);
  EXPECT_TRUE(reader->is_complete());
  EXPECT_EQ(reader->last_ns(), 90'000U);

  auto later = Reader::open(path_);  // without times
  EXPECT_EQ(count_events(*later), 2U);
}

// Its writer was killed.
TEST_F(RecordingTest, FollowsAFileThatIsCutOff) {
  auto writer = Writer::create(path_, description());
  auto reader = Reader::open(path_);
  reader->follow([&] {
    write_events(*writer, 3);
    EXPECT_TRUE(writer->flush());
    return false;
  });
  reader->tell_times();
  Event event;
  int events = 0;
  while (reader->next(event)) events += event.task != nullptr;
  EXPECT_EQ(events, 3);
  EXPECT_FALSE(reader->is_complete());
}

TEST_F(RecordingTest, ExplainsWhatIsNoRecording) {
  set_content("#!/bin/sh\necho hello world\n");
  EXPECT_THAT(Reader::open(path_).error().message, HasSubstr("is not a recording of espy"));
  set_content("");
  EXPECT_THAT(Reader::open(path_).error().message, HasSubstr("is not a recording of espy"));
  set_content(std::string(kFileMagic) + std::string("\x02\0\0\0\0\0\0\0", 8));
  EXPECT_THAT(Reader::open(path_).error().message, HasSubstr("is a recording of version 2, and this espy reads"));
  set_content(std::string(kFileMagic) + std::string("\x09\0\0\0\x2a\x4e\0\0", 8));
  EXPECT_THAT(Reader::open(path_).error().message, HasSubstr("is a recording of format 9, which espy"));
  EXPECT_EQ(Reader::open(path_).error().hint, "espy 2.0.10 or later reads it");
  set_content(std::string(kFileMagic) + std::string("\x09\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(Reader::open(path_).error().hint, "espy of a later release reads it");
  EXPECT_THAT(Reader::open("/dev/null").error().message, HasSubstr("/dev/null"));
}

// ---- Rings of files

class FileRingTest : public RecordingTest {
 protected:
  FileRingTest() {
    char path[] = "/tmp/recordings.XXXXXX";
    directory_ = ::mkdtemp(path);
    name_ = directory_ + "/r";
  }
  ~FileRingTest() override { std::filesystem::remove_all(directory_); }

  std::string file(int number) const { return name_ + ".00000" + std::to_string(number); }

  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const RingFile& each : find_ring_files(name_)) out.push_back(each.path);
    return out;
  }

  // Events a second apart from `first_ns` on; the ring turns behind each.
  static void write(FileRing& ring, Writer& writer, int count, uint64_t first_ns = 1'000) {
    for (int i = 0; i < count; ++i) {
      const uint64_t time_ns = first_ns + uint64_t(i) * 1'000'000'000;
      writer.begin_event(0, time_ns, 0, task(10));
      writer.add_number(i);
      writer.add_text("/etc/passwd");
      ASSERT_TRUE(writer.end_event());
      ASSERT_TRUE(ring.turn(writer, time_ns));
    }
  }

  // A ring with a file for each ten seconds.
  FileRing open(uint64_t kept, uint64_t age_ns = 90'000'000'000) const {
    return *FileRing::make(name_, {.file_count = kept, .age_ns = age_ns}, description());
  }

  std::string directory_, name_;
};

TEST_F(FileRingTest, IsReadAsOneRecording) {
  FileRing ring = open(0);
  Writer writer = *ring.begin();
  write(ring, writer, 35);
  writer.note_lost(3);
  ASSERT_TRUE(writer.finish(99'000'000'000));
  EXPECT_THAT(files(), ElementsAre(file(1), file(2), file(3), file(4)));
  auto reader = Reader::open(std::vector{name_});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(reader->begin_ns(), 1'000U);
  Event event;
  for (int i = 0; i < 35; ++i) {
    ASSERT_TRUE(reader->next(event));
    EXPECT_EQ(event.values[0].number, i);
  }
  EXPECT_FALSE(reader->next(event));
  EXPECT_EQ(reader->lost_count(), 3U);
  EXPECT_EQ(reader->last_ns(), 99'000'000'000U);
  EXPECT_TRUE(reader->is_complete());
  EXPECT_THAT(reader->damages(), ElementsAre());

  auto second = Reader::open(std::vector{file(2)});
  EXPECT_EQ(second->begin_ns(), 9'000'001'000U);
  EXPECT_EQ(count_events(*second), 10U);
  EXPECT_TRUE(second->is_complete());
  auto some = Reader::open(std::vector{file(3), file(2), file(3)});
  EXPECT_EQ(count_events(*some), 20U);
}

// The reader gets each event once, and says which files were deleted before it came to them.
TEST_F(FileRingTest, IsFollowed) {
  for (const uint64_t kept : {uint64_t{0}, uint64_t{2}}) {
    for (const std::string& each : files()) std::filesystem::remove(each);
    FileRing ring = open(kept);
    Writer writer = *ring.begin();
    auto reader = Reader::open(std::vector{name_});
    ASSERT_TRUE(reader) << reader.error().message;
    int waits = 0;
    reader->follow([&] {
      ++waits;
      write(ring, writer, 35, uint64_t(waits) * 1'000'000'000'000);
      EXPECT_TRUE(waits < 2 || writer.finish(9'000'000'000'000));
      EXPECT_TRUE(writer.flush());
      return waits < 2;
    });
    Event event;
    int events = 0;
    while (reader->next(event)) events += reader->is_paused() ? 0 : 1;
    EXPECT_EQ(waits, 2);
    EXPECT_TRUE(reader->is_complete());
    EXPECT_EQ(events == 70, kept == 0) << events;
    EXPECT_EQ(reader->damages().empty(), kept == 0);
  }
}

TEST_F(FileRingTest, KeepsTheNewestFiles) {
  FileRing ring = open(3);
  Writer writer = *ring.begin();
  write(ring, writer, 75);
  ASSERT_TRUE(writer.finish(99'000'000'000));
  EXPECT_THAT(files(), ElementsAre(file(6), file(7), file(8)));
  auto reader = Reader::open(std::vector{name_});
  EXPECT_EQ(count_events(*reader), 25U);
  EXPECT_THAT(reader->damages(), ElementsAre());
}

TEST_F(FileRingTest, KeepsFilesThatAreYoungEnough) {
  FileRing ring = open(0, 20'000'000'000);  // files of two seconds
  Writer writer = *ring.begin();
  write(ring, writer, 40);
  for (const std::string& path : files()) {
    auto reader = Reader::open(path);
    count_events(*reader);
    EXPECT_TRUE(reader->last_ns() >= 19'000'000'000 || path == files().back()) << path;
  }
  EXPECT_GE(files().size(), 8U);
  ASSERT_TRUE(ring.turn(writer, 100'000'000'000));  // nothing happens for a minute
  EXPECT_EQ(files().size(), 1U);
}

// A file ends before it exceeds the limit.
TEST_F(FileRingTest, LimitsTheSizeOfFiles) {
  FileRing ring = *FileRing::make(name_, {.file_bytes = 64 << 10}, description());
  Writer writer = *ring.begin();
  uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    writer.begin_event(0, 1'000 + uint64_t(i), 0, task(10));
    state = state * 6364136223846793005U + 1442695040888963407U;  // hard to compress
    writer.add_number(static_cast<int64_t>(state));
    writer.add_text(std::to_string(state));
    ASSERT_TRUE(writer.end_event());
    ASSERT_TRUE(ring.turn(writer, 1'000 + uint64_t(i)));
  }
  ASSERT_TRUE(writer.finish(99'000));
  EXPECT_GT(files().size(), 5U);
  for (const std::string& path : files()) EXPECT_LE(std::filesystem::file_size(path), 64U << 10) << path;
  auto reader = Reader::open(std::vector{name_});
  EXPECT_EQ(count_events(*reader), 20'000U);
}

// Files of others stay as they are, whatever their names are.
TEST_F(FileRingTest, TouchesOnlyItsOwnFiles) {
  std::filesystem::create_symlink(path_, file(1));
  set_content("precious");
  FileRing ring = open(2);
  Writer writer = *ring.begin();
  std::filesystem::create_symlink(path_, file(3));
  write(ring, writer, 15);
  EXPECT_THAT(files(), ElementsAre(file(1), file(2), file(3), file(4)));
  std::filesystem::remove(file(2));
  std::filesystem::create_symlink(path_, file(2));
  write(ring, writer, 25, 16'000'000'000);
  ASSERT_TRUE(writer.finish(99'000'000'000));
  EXPECT_TRUE(std::filesystem::is_symlink(file(1)));
  EXPECT_TRUE(std::filesystem::is_symlink(file(2)));
  EXPECT_TRUE(std::filesystem::is_symlink(file(3)));
  EXPECT_FALSE(std::filesystem::exists(file(4)));
  EXPECT_EQ(content(), "precious");
}

// The name of a ring stands for its last run.
TEST_F(FileRingTest, TellsRunsApart) {
  Description first = description();
  first.started_wall_ns = 7;
  FileRing old = *FileRing::make(name_, {.age_ns = 90'000'000'000}, first);
  Writer old_writer = *old.begin();
  write(old, old_writer, 15);
  ASSERT_TRUE(old_writer.finish(99'000'000'000));
  FileRing ring = open(0);
  Writer writer = *ring.begin();
  write(ring, writer, 12);
  ASSERT_TRUE(writer.finish(99'000'000'000));
  EXPECT_THAT(files(), ElementsAre(file(1), file(2), file(3), file(4)));
  auto reader = Reader::open(std::vector{name_});
  EXPECT_EQ(count_events(*reader), 12U);
  EXPECT_THAT(Reader::open(std::vector{file(2), file(3)}).error().message, HasSubstr("is of another run than"));
  auto alone = Writer::create(path_, description());
  EXPECT_THAT(Reader::open(std::vector{path_, file(3)}).error().message, HasSubstr("is a recording by itself"));
  EXPECT_THAT(Reader::open(std::vector{directory_ + "/none"}).error().message, HasSubstr("No such file"));
  EXPECT_THAT(FileRing::make(path_, {.file_count = 2}, description()).error().message, HasSubstr("exists, and"));
}

// What kill -9, a full disk or another hand leaves.
TEST_F(FileRingTest, ReadsWhatIsLeft) {
  FileRing ring = open(0);
  Writer writer = *ring.begin();
  write(ring, writer, 45);
  ASSERT_TRUE(writer.flush());
  std::filesystem::remove(file(2));
  std::filesystem::resize_file(file(3), std::filesystem::file_size(file(3)) - 1);  // its end
  const OwnedFd begun(::open(file(6).c_str(), O_WRONLY | O_CREAT, 0600));
  auto reader = Reader::open(std::vector{name_});
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ(count_events(*reader), 35U);
  EXPECT_FALSE(reader->is_complete());
  EXPECT_THAT(reader->damages(), ElementsAre(HasSubstr(file(6) + " is not a recording"),
                                             HasSubstr("files of the ring that are missing before " + file(3) + ": 1"),
                                             HasSubstr(file(3) + " was cut off")));
}

}  // namespace
}  // namespace espy::recording
