// The tables that user space writes, read as programs search them.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "runtime/unwind_tables.h"

namespace espy::runtime {
namespace {

using symbols::FrameBase;
using symbols::FrameRule;
using symbols::UnwindRow;

constexpr uint32_t kChunkCells = 1024;

class Chunks {
 public:
  explicit Chunks(uint32_t most) : most_(most) { add(); }
  UnwindCells cells() {
    return {chunks_[0], kChunkCells, most_, [this](uint32_t first, uint32_t count) { return add(first, count); }};
  }
  uint64_t cell(uint64_t index) const {
    uint64_t out = 0;
    std::memcpy(&out, chunks_.at(index / kChunkCells).data() + index % kChunkCells * sizeof(out), sizeof(out));
    return out;
  }
  size_t count() const { return chunks_.size(); }
  void refuse() { refuses_ = true; }

  // The search of builtins/unwind_frame.cc: within the rows of a page, which are in one chunk.
  uint32_t rule_at(const program::UnwindFile& file, uint32_t offset) const {
    const uint64_t page = cell(file.first_cell + (offset >> program::kUnwindPageShift) - file.first_page);
    uint64_t low = page & UINT32_MAX, high = page >> 32;
    EXPECT_EQ(low / kChunkCells, high / kChunkCells) << "the rows of a page are in two chunks";
    EXPECT_LT(high - low, program::kUnwindPageRows);
    while (low < high) {
      const uint64_t middle = (low + high + 1) / 2;
      if (cell(middle) >> 32 <= offset)
        low = middle;
      else
        high = middle - 1;
    }
    return static_cast<uint32_t>(cell(low));
  }

 private:
  std::span<std::byte> add() {
    memory_.push_back(std::make_unique<std::byte[]>(kChunkCells * sizeof(uint64_t)));
    return chunks_.emplace_back(memory_.back().get(), kChunkCells * sizeof(uint64_t));
  }
  Result<std::vector<std::span<std::byte>>> add(uint32_t first, uint32_t count) {
    EXPECT_EQ(first, chunks_.size());
    if (refuses_) return fail("no memory");
    std::vector<std::span<std::byte>> out;
    for (uint32_t i = 0; i < count; ++i) out.push_back(add());
    return out;
  }

  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<std::span<std::byte>> chunks_;
  uint32_t most_;
  bool refuses_ = false;
};

std::vector<UnwindRow> random_rows(std::mt19937& random, size_t count, uint32_t most_bytes) {
  std::vector<UnwindRow> out;
  uint32_t offset = static_cast<uint32_t>(random() % 10'000);
  for (size_t i = 0; i < count; ++i) {
    out.push_back({offset, FrameRule::make(FrameBase::kStackPointer, static_cast<int64_t>(random() % 1000) * 8, 0)});
    offset += 1 + static_cast<uint32_t>(random() % most_bytes);
  }
  return out;
}

void expect_same(const Chunks& chunks, const program::UnwindFile& file, const std::vector<UnwindRow>& rows) {
  const auto check = [&](uint32_t offset) {
    const UnwindRow* row = symbols::find_row(rows, offset);
    ASSERT_NE(row, nullptr);
    ASSERT_EQ(chunks.rule_at(file, offset), row->rule.bits) << "at " << offset;
  };
  for (const UnwindRow& row : rows) {
    check(row.file_offset);
    if (row.file_offset > rows.front().file_offset) check(row.file_offset - 1);
  }
}

TEST(UnwindCells, TablesInManyChunksHaveTheRulesOfTheirRows) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same tables each time
  for (const uint32_t most_bytes : {1, 2, 7, 40, 3000}) {
    Chunks chunks(10'000);
    UnwindCells cells = chunks.cells();
    std::vector<std::pair<program::UnwindFile, std::vector<UnwindRow>>> tables;
    for (const size_t count : {1, 200, 1023, 1024, 1025, 5000, 300, 20'000}) {
      const auto rows = random_rows(random, count, most_bytes);
      const auto file = cells.append(rows);
      ASSERT_TRUE(file);
      tables.emplace_back(*file, rows);
    }
    for (const auto& [file, rows] : tables) expect_same(chunks, file, rows);
    EXPECT_EQ(chunks.cell(0), 0U);
    cells.set_ready();
    EXPECT_EQ(chunks.cell(0), 1U);
  }
}

TEST(UnwindCells, ChunksAreAddedAsTheyAreNeeded) {
  std::mt19937 random(2);  // NOLINT(cert-msc51-cpp)
  Chunks chunks(100);
  UnwindCells cells = chunks.cells();
  ASSERT_TRUE(cells.append(random_rows(random, 100, 4)));
  EXPECT_EQ(chunks.count(), 1U);
  ASSERT_TRUE(cells.append(random_rows(random, 1000, 4)));
  EXPECT_EQ(chunks.count(), 2U);
  EXPECT_FALSE(cells.has_room_ahead(1));
}

TEST(UnwindCells, WhatFindsNoRoomIsInWhatIsNeeded) {
  std::mt19937 random(3);  // NOLINT(cert-msc51-cpp)
  const auto large = random_rows(random, 3000, 4), small = random_rows(random, 500, 4);
  Chunks chunks(2);
  UnwindCells cells = chunks.cells();
  EXPECT_FALSE(cells.append(large));
  const auto file = cells.append(small);
  ASSERT_TRUE(file);
  expect_same(chunks, *file, small);
  Chunks enough(static_cast<uint32_t>((cells.needed() + kChunkCells - 1) / kChunkCells));
  UnwindCells larger = enough.cells();
  EXPECT_TRUE(larger.append(large));
  EXPECT_TRUE(larger.append(small));

  Chunks refused(100);
  refused.refuse();
  UnwindCells without_memory = refused.cells();
  EXPECT_FALSE(without_memory.append(large));
  EXPECT_TRUE(without_memory.append(small));
}

}  // namespace
}  // namespace espy::runtime
