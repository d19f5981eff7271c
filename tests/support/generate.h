// Random scripts for judges to agree about.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace espy::differential {

// A probe with an integer expression in it.
struct GeneratedExpression {
  std::string both;      // twice: written with literals, which the checker folds, to @aN, and with the same numbers in
                         // variables of the same types, which it cannot, to @bN
  std::string variable;  // only the latter: a literal form that overflows is an error
};
std::vector<GeneratedExpression> generate_expressions(uint32_t seed, uint32_t count);

// A begin probe of nested statements over variables, scalar and keyed maps and aggregations.
std::string generate_program(uint32_t seed);

}  // namespace espy::differential
