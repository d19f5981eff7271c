// /proc/kallsyms, searched both ways. Inside this room only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace espy::symbols {

struct KernelSymbol {
  uint64_t address = 0;
  std::string_view name;
  std::string_view module;  // "" for vmlinux
};

// The text is read as far as a question needs and kept; symbols are views into it, good until the next question.
class KernelSymbols {
 public:
  explicit KernelSymbols(std::string path = "/proc/kallsyms") : path_(std::move(path)) {}

  std::optional<KernelSymbol> find(std::string_view name);
  std::optional<KernelSymbol> at_or_before(uint64_t address);
  // Reads a part of what at_or_before() will need, some milliseconds of work; false once there is no more.
  bool read_ahead();

 private:
  bool read_more();
  void build_index();
  std::string_view line_at(size_t offset) const;

  std::string path_;
  OwnedFd file_;
  bool at_end_ = false;
  std::string text_;          // whole lines, each with its newline
  std::string partial_line_;  // what was read behind the last of them
  bool indexed_ = false;
  std::vector<uint32_t> by_address_;  // where lines begin in text_
};

}  // namespace espy::symbols
