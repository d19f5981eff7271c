#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "symbols/debug_file.h"
#include "symbols/elf_cache.h"
#include "symbols_support.h"

namespace espy::symbols {
namespace {

using testing::read_bytes;
using testing::TempDir;

// An archive without a comment that has one file, `a`, with `content`. Its directory can list that any number of times.
std::string archive_of(const std::string& content, bool is_compressed, size_t entry_count = 1) {
  const auto number = [](uint64_t value, size_t size) {
    std::string out;
    for (size_t i = 0; i < size; ++i) out += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
    return out;
  };
  const std::string common = number(20, 2) + number(0, 2) + number(is_compressed ? 8 : 0, 2) + number(0, 8) +
                             number(content.size(), 4) + number(content.size(), 4) + number(1, 2) + number(0, 2);
  const std::string header = "PK\3\4" + common + "a";
  const std::string entry = "PK\1\2" + number(20, 2) + common + number(0, 10) + number(0, 4) + "a";
  std::string entries;
  for (size_t i = 0; i < entry_count; ++i) entries += entry;
  const std::string end = "PK\5\6" + number(0, 4) + number(1, 2) + number(1, 2) + number(entries.size(), 4) +
                          number(header.size() + content.size(), 4) + number(0, 2);
  return header + content + entries + end;
}

TEST(Archive, FindsWhatIsStored) {
  const TempDir dir;
  const std::string path = dir.write("a.zip", archive_of("content", false));
  const auto found = find_stored_file(path, "a");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->offset, 31u);
  EXPECT_EQ(found->size, 7u);
  const auto read = read_stored_file(path, "a");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->bytes, "content");
  EXPECT_EQ(read->offset, 31u);
  const auto by_place = StoredFiles::read(path);
  ASSERT_TRUE(by_place) << by_place.error().message;
  EXPECT_EQ(by_place->at(path, 31 + 6).value_or(StoredFile{}).name, "a");
  EXPECT_FALSE(by_place->at(path, 31 + 7));
  EXPECT_EQ(path_on_disk(path + "!/a"), path);
  EXPECT_EQ(path_on_disk(path), path);
}

TEST(Archive, ADirectoryMayEndInAnExclamationMark) {
  const TempDir dir;
  EXPECT_TRUE(split_archive_path(dir.path("a.zip!/b")));
  std::filesystem::create_directory(dir.path("wow!"));
  EXPECT_FALSE(split_archive_path(dir.path("wow!/b")));
  const auto inside = split_archive_path(dir.path("wow!/a.zip!/b"));
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->archive, dir.path("wow!/a.zip"));
}

TEST(Archive, DoesNotTakeAllMemory) {
  const TempDir dir;
  std::string archive = archive_of("content", false);
  archive[archive.size() - 22 + 15] = '\x7f';  // the directory's size, the highest byte
  EXPECT_EQ(find_stored_file(dir.write("z", archive), "a").error().message, dir.path("z") + " has too many files");
}

TEST(Archive, RefusesTheRest) {
  const TempDir dir;
  const std::string stored = archive_of("content", false);
  EXPECT_EQ(find_stored_file(dir.write("z", archive_of("content", true)), "a").error().message,
            "a in " + dir.path("z") + " is compressed");
  EXPECT_EQ(find_stored_file(dir.write("s", stored), "b").error().message, dir.path("s") + " has no file b");
  EXPECT_EQ(find_stored_file(dir.write("t", "text"), "a").error().message, dir.path("t") + " is not a ZIP archive");
  for (size_t size = 0; size < stored.size(); ++size)
    EXPECT_FALSE(find_stored_file(dir.write("c", stored.substr(0, size)), "a"));
  for (size_t front = 1; front < stored.size(); ++front) {  // offsets that lead elsewhere
    EXPECT_FALSE(read_stored_file(dir.write("c", stored.substr(front)), "a")) << front;
  }
}

// Returns how much reading a file takes that was read before, by another path and for another offset.
uint64_t read_again_bytes(const TempDir& dir, ElfCache& cache, uint64_t offset, bool is_found) {
  EXPECT_EQ(cache.open_with_code(dir.path("z"), offset, {}).has_value(), is_found);
  std::filesystem::create_hard_link(dir.path("z"), dir.path("link"));
  const uint64_t before = read_bytes();
  EXPECT_EQ(cache.open_with_code(dir.path("link"), offset + 1, {}).has_value(), is_found);
  const auto held = cache.hold(dir.path("z"), {});
  EXPECT_EQ(cache.open_with_code(**held, offset + 2).has_value(), is_found);
  const uint64_t out = read_bytes() - before;
  std::filesystem::remove(dir.path("link"));
  return out;
}

// The file at the path of a mapping: by its number, without the highest bits, and by when it has changed.
TEST(ElfCache, AnotherFileIsRefused) {
  const TempDir dir;
  ElfCache cache({});
  const auto file = open_untrusted(dir.write("f", "text"), 100);
  ASSERT_TRUE(file);
  const uint64_t changed_us = file->changed_ns / 1000;
  const auto holds = [&](const ElfCache::MappedFile& mapped) { return cache.hold(dir.path("f"), mapped).has_value(); };
  EXPECT_TRUE(holds({}));
  EXPECT_TRUE(holds({file->inode}));
  EXPECT_TRUE(holds({file->inode, changed_us}));
  EXPECT_TRUE(holds({file->inode | uint64_t{1} << 63, changed_us + 1}));
  EXPECT_FALSE(holds({file->inode + 1}));
  EXPECT_FALSE(holds({file->inode, changed_us - 1}));
}

// A process can map a file as often as it likes.
TEST(Archive, DirectoriesAreReadOnce) {
  if (read_bytes() == 0) GTEST_SKIP() << "the kernel does not count what is read";
  constexpr size_t kEntries = 20'000;  // of a megabyte
  constexpr uint64_t kFewBytes = 16 << 10;
  const TempDir dir;
  ElfCache cache({});
  dir.write("z", archive_of("content", true, kEntries));
  EXPECT_LT(read_again_bytes(dir, cache, 0, false), kFewBytes);
  dir.write("z", archive_of("no ELF file", false, kEntries));
  EXPECT_LT(read_again_bytes(dir, cache, 31, false), kFewBytes);
  std::ifstream library(dir.build("library.so", "int f(void) { return 1; }", "-shared -fPIC"), std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(library), {}};
  dir.write("z", archive_of(code, false, kEntries));
  EXPECT_LT(read_again_bytes(dir, cache, 31 + 1000, true), kFewBytes);
}

}  // namespace
}  // namespace espy::symbols
