#include "runtime/unwind_cells.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace espy::runtime {

namespace {

// Returns the cells of a table: one for each page, then one for each row. `file`: its pages, and the index of its first
// cell. Neighbouring pages share a row; it is repeated where the rows of the second one start in another chunk.
std::vector<uint64_t> make_cells(const std::vector<symbols::UnwindRow>& rows, const program::UnwindFile& file,
                                 uint64_t chunk_cells) {
  std::vector<uint64_t> cells(file.page_count);
  cells.reserve(file.page_count + rows.size());
  // The first row of a page is the last one that does not start after the page does.
  size_t row = 0;
  const auto last_row_at = [&](uint64_t offset) {
    while (row + 1 < rows.size() && rows[row + 1].file_offset <= offset) ++row;
    return row;
  };
  size_t written = 0;  // rows before this one have their cells
  for (uint64_t page = 0; page < file.page_count; ++page) {
    const uint64_t begin = (file.first_page + page) << program::kUnwindPageShift;
    const size_t first = last_row_at(begin), last = last_row_at(begin + (1 << program::kUnwindPageShift) - 1);
    uint64_t at = file.first_cell + cells.size() - (written - first);  // of the row `first`
    if (at / chunk_cells != (at + last - first) / chunk_cells) {
      at = (at / chunk_cells + 1) * chunk_cells;
      cells.resize(at - file.first_cell);
      written = first;
    }
    for (; written <= last; ++written)
      cells.push_back(program::unwind_row_cell(rows[written].file_offset, rows[written].rule.bits));
    cells[page] = program::unwind_page_cell(static_cast<uint32_t>(at), static_cast<uint32_t>(at + last - first));
  }
  return cells;
}

}  // namespace

UnwindCells::UnwindCells(std::span<std::byte> first, uint32_t chunk_cells, uint32_t max_chunks, AddChunks add_chunks)
    : chunk_cells_(chunk_cells), max_chunks_(max_chunks), add_chunks_(std::move(add_chunks)), chunks_{first} {}

void UnwindCells::set_ready() { write(0, std::array{uint64_t{1}}); }

Result<program::UnwindFile> UnwindCells::append(const std::vector<symbols::UnwindRow>& rows) {
  program::UnwindFile file;
  file.has_table = 1;
  file.first_cell = static_cast<uint32_t>(used_);
  file.first_page = rows.front().file_offset >> program::kUnwindPageShift;
  file.page_count = (rows.back().file_offset >> program::kUnwindPageShift) - file.first_page + 1;
  const std::vector<uint64_t> cells = make_cells(rows, file, chunk_cells_);
  if (Status done = grow(used_ + cells.size()); !done) {
    refused_ += cells.size();
    return tl::unexpected<Error>(std::move(done).error());
  }
  write(used_, cells);
  used_ += cells.size();
  return file;
}

bool UnwindCells::has_room_ahead(size_t row_count) const { return used_ + row_count <= uint64_t{chunk_cells_} / 4 * 3; }

Status UnwindCells::grow(uint64_t cells) {
  const uint64_t count = (cells + chunk_cells_ - 1) / chunk_cells_;
  if (count <= chunks_.size()) return {};
  if (count > max_chunks_) return fail("the tables have their largest size");
  const auto first = static_cast<uint32_t>(chunks_.size());
  const auto added = TRY(add_chunks_(first, static_cast<uint32_t>(count) - first));
  chunks_.insert(chunks_.end(), added.begin(), added.end());
  return {};
}

void UnwindCells::write(uint64_t first_cell, std::span<const uint64_t> cells) {
  while (!cells.empty()) {
    const uint64_t at = first_cell % chunk_cells_;
    const auto part = cells.first(std::min<uint64_t>(cells.size(), chunk_cells_ - at));
    std::memcpy(chunks_[first_cell / chunk_cells_].data() + at * sizeof(uint64_t), part.data(), part.size_bytes());
    cells = cells.subspan(part.size());
    first_cell += part.size();
  }
}

}  // namespace espy::runtime
