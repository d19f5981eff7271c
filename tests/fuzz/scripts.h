// Random scripts: good ones, damaged.
#pragma once

#include <string>
#include <vector>

#include "driver.h"

namespace espy::fuzz {

// Changes seeds byte by byte, which finds what a parser does not expect, or piece by piece - a name for a name, an
// expression for an expression, a statement more - of which much still means something.
class ScriptMutator {
 public:
  explicit ScriptMutator(std::vector<std::string> seeds);
  // The scripts of the tests, and those in `files`.
  static ScriptMutator with_seeds(const std::vector<std::string>& files);

  std::string by_bytes(Random& random) const;
  std::string by_pieces(Random& random) const;

 private:
  struct Script {
    std::vector<std::string> tokens;
  };
  struct Range {
    size_t begin = 0, end = 0;
  };
  const std::string& any_token(Random& random, const std::string& like) const;
  Range any_group(Random& random, const std::vector<std::string>& tokens) const;
  void change_piece(Random& random, std::vector<std::string>& tokens) const;

  std::vector<std::string> seeds_;
  std::vector<Script> scripts_;
  std::vector<std::vector<std::string>> pools_;  // tokens by class
};

}  // namespace espy::fuzz
