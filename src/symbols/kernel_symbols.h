// Lookups in /proc/kallsyms by name and by address. Internal to symbols/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"

namespace espy::symbols {

struct KernelSymbol {
  uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "" for vmlinux
};

// Reads the text as far as a lookup needs, and keeps it. Symbols are views into it, valid until the next call.
class KernelSymbols {
 public:
  explicit KernelSymbols(std::string path = "/proc/kallsyms") : path_(std::move(path)) {}

  std::optional<KernelSymbol> find(std::string_view name);
  std::optional<KernelSymbol> at_or_before(uint64_t address);
  // Returns whether the kernel shows all addresses as zero. Does not read the file: false before an at_or_before().
  bool are_hidden() const;
  // Does a few milliseconds of the work that the first at_or_before() needs. Returns false once it is complete.
  bool read_ahead();

 private:
  bool read_more();
  void build_index();
  std::string_view line_at(size_t offset) const;

  std::string path_;
  OwnedFd file_;
  bool at_end_ = false;
  std::string text_;          // whole lines, each with its newline
  std::string partial_line_;  // read after the last of them
  bool indexed_ = false;
  std::vector<uint32_t> by_address_;  // offsets of lines in text_
};

}  // namespace espy::symbols
