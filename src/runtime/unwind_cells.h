// UnwindCells: the memory of the unwind tables that programs search (program/unwind.h): cells in chunks, which are
// added as tables need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "program/unwind.h"
#include "symbols/unwind.h"

namespace espy::runtime {

class UnwindCells {
 public:
  // Adds `count` chunks, from the index `first` on; returns their memory.
  using AddChunks = std::function<Result<std::vector<std::span<std::byte>>>(uint32_t first, uint32_t count)>;
  // `first`: the memory of the first chunk, which may exceed it. `chunk_cells`: a power of two.
  UnwindCells(std::span<std::byte> first, uint32_t chunk_cells, uint32_t max_chunks, AddChunks add_chunks);

  // Lets the programs search the tables.
  void set_ready();

  // Appends a table. `rows` are sorted and not empty. Fails if it does not fit the largest size, or the kernel refuses
  // memory.
  Result<program::UnwindFile> append(const std::vector<symbols::UnwindRow>& rows);
  // True if a table of so many rows fits without another chunk, and leaves a quarter of the first one to others.
  bool has_room_ahead(size_t row_count) const;

  // Returns the number of cells that would have been enough for all tables.
  uint64_t needed() const { return used_ + refused_; }

 private:
  Status grow(uint64_t cells);
  void write(uint64_t first_cell, std::span<const uint64_t> cells);

  uint32_t chunk_cells_;
  uint32_t max_chunks_;
  AddChunks add_chunks_;
  std::vector<std::span<std::byte>> chunks_;
  uint64_t used_ = 1;  // cell 0 says whether the tables are ready
  uint64_t refused_ = 0;
};

}  // namespace espy::runtime
