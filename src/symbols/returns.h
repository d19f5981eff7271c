// Where functions return, for probes that must not replace the return address on the stack: an exception does not pass
// a replaced address, and Go moves stacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/arch/arch.h"
#include "symbols/elf_file.h"

namespace espy::symbols {

// Whether exceptions, or panics of Rust, may pass functions of the file: it brings code that unwinds stacks, or needs a
// library that does. False for the C library, whose tables are for the end of threads.
bool may_be_unwound(const ElfFile& file);

// Whether the file calls functions that switch stacks: coroutines, and signal handlers on a stack of their own. The
// kernel takes the calls whose return it follows for nested, on one stack (kernel/events/uprobes.c,
// cleanup_return_instances and uprobe_handle_trampoline), so a program that switches stacks returns to wrong places.
bool switches_stacks(const ElfFile& file);

struct Returns {
  std::vector<uint64_t> file_offsets;  // of the return instructions
  std::string why_incomplete;          // a clause about the function: "it ends in a jump to `g`"; "" if these are all
};

// How much code of a file is read. In a malformed file, all functions can reach to its end.
struct ReadCode {
  uint64_t begin = UINT64_MAX, end = 0;  // of all
  uint64_t size_bytes = 0;               // of each, summed up
  bool is_refused = false;

  // False if the sum is much more than their code: parts of assembly code can overlap, compiled functions do not.
  bool add(const symbols::ElfSymbol& symbol) {
    constexpr uint64_t kMostOfOne = 64 << 20, kAnyBytes = 1 << 20, kMostBytes = 512 << 20, kMostTimes = 4;
    if (symbol.size > kMostOfOne) return false;
    begin = std::min(begin, symbol.file_offset);
    end = std::max(end, symbol.file_offset + symbol.size);
    size_bytes += symbol.size;
    return size_bytes <= kAnyBytes + std::min((end - begin) * kMostTimes, kMostBytes);
  }
};

// Reads the code of functions, including what compilers have moved out of them (NAME.cold).
class ReturnFinder {
 public:
  // With `reads_all`, looks for jumps into a function in all others: hand-written code can share a return.
  ReturnFinder(const ElfFile& file, const kernel::Arch& arch, bool reads_all)
      : file_(file), arch_(arch), reads_all_(reads_all) {}

  // The function needs a size. Reads its code; the caller has to limit how much.
  Returns find(const ElfSymbol& function);
  // The offsets in the file to which its jumps lead, sorted, without its other parts. The same holds of its code.
  std::vector<uint64_t> jump_targets(const ElfSymbol& function) const { return read(function).targets; }

 private:
  // The code of a symbol: offsets are those in the file.
  struct Part {
    uint64_t begin = 0;
    std::vector<bool> starts;  // for each byte, whether an instruction starts there
    std::vector<uint64_t> returns;
    std::vector<uint64_t> targets;  // of jumps
    std::string problem;            // why there may be other returns

    uint64_t end() const { return begin + starts.size(); }
    bool contains(uint64_t offset) const { return offset >= begin && offset < end(); }
  };
  Part read(const ElfSymbol& symbol) const;
  // The parts of that name besides the function.
  const std::vector<ElfSymbol>& cold_parts(const std::string& name);
  std::string why_jump(const std::string& name, uint64_t target, std::vector<Part>& parts) const;
  std::string why_entered(const std::string& name, const Part& part);
  void find_jumps_between();

  const ElfFile& file_;
  const kernel::Arch& arch_;
  const bool reads_all_;
  bool has_read_all_ = true;                                                 // what jumps_between_ needs
  std::optional<std::map<std::string, std::vector<ElfSymbol>>> cold_parts_;  // by the function's name
  // The names of functions with jumps out of them, by the offset to which they lead. The answer for each offset of a
  // function.
  std::optional<std::multimap<uint64_t, std::string>> jumps_between_;
};

}  // namespace espy::symbols
