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
  // `seeds`: scripts, to which those of the parser's tests are added; what a golden test expects is no part of a
  // script.
  explicit ScriptMutator(std::vector<std::string> seeds);

  // Returns a seed with some changes.
  std::string next(Random& random) const;
  // Returns the script with some changes. The result may be longer, by some thousands of bytes at most.
  std::string changed(Random& random, const std::string& script) const;

 private:
  struct Range {
    size_t begin = 0, end = 0;
  };
  std::string by_bytes(Random& random, std::string text) const;
  std::string by_pieces(Random& random, std::vector<std::string> tokens) const;
  const std::string& any_token(Random& random, const std::string& like) const;
  Range any_group(Random& random, const std::vector<std::string>& tokens) const;
  void change_piece(Random& random, std::vector<std::string>& tokens) const;

  std::vector<std::string> seeds_;
  std::vector<std::vector<std::string>> scripts_;  // the tokens of each seed
  std::vector<std::vector<std::string>> pools_;    // tokens by class
};

}  // namespace espy::fuzz
