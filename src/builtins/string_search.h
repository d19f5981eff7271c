// Search for a string in another one by BPF instructions, for kernels without bpf_strstr().
#pragma once

#include <cstdint>
#include <string>

#include "lower/lowering.h"

namespace espy::builtins {

// The largest capacity of a string that can be searched, or searched for. The verifier follows the loop to its end, and
// gives up after a million instructions or 8192 branches.
constexpr uint32_t kMaxSearchedBytes = 2048;

class StringSearch {
 public:
  // `haystack` is in our memory and ends with a NUL.
  StringSearch(lower::Lowering& lowering, lower::Operand haystack);

  // Emit the offset of the first needle, -1 if there is none. The needle is a constant, or in our memory and ends
  // with a NUL.
  ir::ValueId find(const std::string& text);
  ir::ValueId find(const lower::Operand& operand);

 private:
  // Bytes at an address; an index is masked to be within them.
  struct Bytes {
    ir::ValueId address;
    uint32_t mask;
  };
  struct Needle {
    Bytes text;
    ir::ValueId borders;  // the address of a table of uint32, with as many entries as `text` has bytes
    ir::ValueId length;
  };
  struct Step {
    ir::ValueId advance, matched;
  };

  Bytes copy_of(const lower::Operand& text, uint32_t extra_bytes = 0);
  ir::ValueId address_of_border(const Needle& needle, ir::ValueId index);
  ir::ValueId byte_at(const Bytes& bytes, ir::ValueId index);
  ir::ValueId is_zero(ir::ValueId number);
  Step step(const Needle& needle, ir::ValueId byte, ir::ValueId matched);
  ir::ValueId write_borders(const Needle& needle, uint32_t capacity_bytes);
  ir::ValueId search(const Needle& needle);
  ir::ValueId search_short(const std::string& needle);
  ir::ValueId difference(ir::ValueId address, const std::string& text);

  lower::Lowering& lowering_;
  ir::Builder& ir_;
  lower::Operand haystack_;
  uint32_t capacity_;
};

}  // namespace espy::builtins
