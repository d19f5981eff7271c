// Damaged files: seeds with some of their bytes changed.
#pragma once

#include <string>
#include <vector>

#include "driver.h"

namespace espy::fuzz {

// Changes bits, numbers of 1 to 8 bytes and runs of bytes, cuts, and joins parts of two seeds. In ELF files half of the
// changes go to headers of sections or into one section, since most bytes of a program have no meaning for a tracer.
class ByteMutator {
 public:
  explicit ByteMutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  // Returns a seed with some changes; any bytes if there are no seeds.
  std::string next(Random& random) const;
  // Makes one change. The result has at most `max_bytes`.
  void change(Random& random, std::string& bytes, size_t max_bytes) const;

 private:
  std::vector<std::string> seeds_;
};

}  // namespace espy::fuzz
