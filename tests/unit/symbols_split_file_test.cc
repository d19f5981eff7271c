// .dwo files that no compiler writes, and how often they are read.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "symbols/dwarf/split_file.h"
#include "symbols_support.h"

namespace espy::symbols::dwarf {
namespace {

using testing::TempDir;

// A .dwo file of DWARF 5 with units without content, whose ids are 1, 2, ...
std::string file_with_units(int count) {
  std::string units;
  for (int id = 1; id <= count; ++id)
    units += std::string("\x12\0\0\0\x05\0\x05\x08\0\0\0\0", 12) + static_cast<char>(id) + std::string(7, '\0') +
             std::string("\1\0", 2);
  const std::string abbreviations("\x01\x11\0\0\0\0", 6);
  return make_elf({{".debug_info.dwo", units}, {".debug_abbrev.dwo", abbreviations}}, 0);
}

// An index of DWARF 5: slots of ids and rows, and rows of columns of .debug_info.dwo, each an offset and a size.
std::string package_index(const std::vector<std::pair<uint64_t, uint32_t>>& slots, uint32_t columns,
                          const std::vector<std::pair<uint32_t, uint32_t>>& rows) {
  std::string out;
  const auto add = [&](auto number) { out.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  for (const size_t number : {size_t{5}, size_t{columns}, rows.size(), slots.size()})
    add(static_cast<uint32_t>(number));
  for (const auto& [id, row] : slots) add(id);
  for (const auto& [id, row] : slots) add(row);
  for (uint32_t i = 0; i < columns; ++i) add(uint32_t{1});
  for (const auto& [offset, size] : rows)
    for (uint32_t i = 0; i < columns; ++i) add(offset);
  for (const auto& [offset, size] : rows)
    for (uint32_t i = 0; i < columns; ++i) add(size);
  return out;
}

TEST(Package, AUnitHasOnePieceOfASection) {
  const TempDir dir;
  const std::string info = std::string(50'000, 'a') + std::string(50'000, 'b');
  const std::string index =
      package_index({{7, 2}, {7, 1}, {7, 2}, {8, 1}, {8, 3}}, 16, {{0, 100'000}, {50'000, 50'000}, {0, 1}});
  const std::string elf = make_elf({{".debug_cu_index", index}, {".debug_info.dwo", info}}, 0);
  const auto package = Package::open(dir.write("program.dwp", elf));
  ASSERT_TRUE(package);
  const std::string first = package->unit(7), second = package->unit(8);
  EXPECT_LT(first.size(), 51'000u) << "of the first slot";
  EXPECT_GT(first.size(), 50'000u);
  EXPECT_LT(second.size(), 101'000u);
  EXPECT_GT(second.size(), 100'000u);
  EXPECT_EQ(package->unit(9), "");
}

class SplitFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = SplitFiles::make();
    ASSERT_TRUE(made);
    files_.emplace(std::move(*made));
    files_->allow_for(program());
  }
  UntrustedFile program() const { return *open_untrusted(directory_.write("program", "x"), 1); }
  // Returns the path of a file that claims to have debug information of that size, all of it zeros.
  std::string write_zeros(const std::string& name, uint64_t mebibytes) const {
    std::string elf = make_elf({{".debug_info.dwo", ""}}, 0);
    Elf64_Ehdr header;
    std::memcpy(&header, elf.data(), sizeof(header));
    const uint64_t bytes = mebibytes << 20;
    std::memcpy(&elf[header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size)], &bytes, sizeof(bytes));
    std::filesystem::resize_file(directory_.write(name, elf), elf.size() + bytes);
    return directory_.path(name);
  }
  bool is_empty() const { return std::filesystem::is_empty(files_->directory()); }

  TempDir directory_;
  std::optional<SplitFiles> files_;
};

TEST_F(SplitFilesTest, AFileIsReadOnceWhateverLeadsToIt) {
  const std::string path = write_zeros("zeros", 60);
  for (int i = 0; i < 10; ++i) {
    const std::string link = directory_.path("link" + std::to_string(i));
    std::filesystem::create_symlink(path, link);
    EXPECT_EQ(files_->find(link, 1), nullptr);
  }
  EXPECT_FALSE(files_->has_refused());
}

TEST_F(SplitFilesTest, FilesThatTakeNoDiskAreBounded) {
  EXPECT_EQ(files_->find(write_zeros("small", 1), 1), nullptr);
  EXPECT_FALSE(files_->has_refused());
  EXPECT_EQ(files_->find(write_zeros("large", 300), 1), nullptr);
  EXPECT_TRUE(files_->has_refused());
}

TEST_F(SplitFilesTest, WhatIsMadeOfAPackageIsBounded) {
  EXPECT_FALSE(files_->add(1, [] { return std::string(300 << 20, '\0'); }));
  EXPECT_TRUE(files_->has_refused());
  EXPECT_FALSE(files_->add(1, [] { return file_with_units(1); }));
}

TEST_F(SplitFilesTest, AFileOfSeveralUnitsIsCopiedOnce) {
  const std::string path = directory_.write("units", file_with_units(2));
  EXPECT_EQ(files_->find(path, 3), nullptr);
  SplitFile* file = files_->find(path, 1);
  ASSERT_NE(file, nullptr);
  const std::string copy = file->copy;
  const auto is_shown = [&](const std::string& name) {
    return files_->show(*file, name, [&] { return std::filesystem::exists(files_->directory() + "/" + name); });
  };
  EXPECT_TRUE(is_shown("a.dwo"));
  EXPECT_EQ(files_->find(path, 2), file);
  EXPECT_EQ(file->copy, copy);
  EXPECT_TRUE(is_shown("some/directory/./b.dwo"));
  EXPECT_TRUE(is_empty());
}

TEST_F(SplitFilesTest, OnlyDebugInformationThatIsWantedCounts) {
  const std::string path = directory_.write("units", file_with_units(2) + std::string(100'000, 'x'));
  EXPECT_EQ(files_->find(path, 3), nullptr);
  EXPECT_EQ(files_->debug_bytes(), 0u);
  for (int i = 0; i < 2; ++i) EXPECT_NE(files_->find(path, 1), nullptr);
  EXPECT_NE(files_->find(path, 2), nullptr);
  EXPECT_EQ(files_->debug_bytes(), 2u * 22 + 6);
}

TEST_F(SplitFilesTest, AFileOfOneUnitIsCopiedAgain) {
  const std::string path = directory_.write("unit", file_with_units(1));
  for (const char* name : {"a.dwo", "b/a.dwo"}) {
    SplitFile* file = files_->find(path, 1);
    ASSERT_NE(file, nullptr);
    EXPECT_TRUE(files_->show(*file, name, [] { return true; }));
    EXPECT_EQ(file->copy, "");
    EXPECT_TRUE(is_empty());
  }
}

TEST_F(SplitFilesTest, NamesCannotLeadUpOrDeep) {
  SplitFile* file = files_->find(directory_.write("units", file_with_units(2)), 1);
  ASSERT_NE(file, nullptr);
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "d/";
  for (const std::string& name : {std::string(), std::string("a/../../x"), std::string("a/"), deep + "x"})
    EXPECT_FALSE(files_->show(*file, name, [] { return true; })) << name;
  EXPECT_TRUE(is_empty());
  EXPECT_TRUE(files_->show(*file, "x", [] { return true; }));
}

}  // namespace
}  // namespace espy::symbols::dwarf
