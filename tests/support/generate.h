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

// A begin probe of nested statements. They cover:
//
//   statements     if, else if, while, for over ranges and maps, unroll, in each other to a depth of three; break,
//                  continue; blocks; assignments with operators; ++, --; let with a type and without
//   variables      of the probe, and of each block, where an assignment or `let` may be the first; hoisted out of both
//                  branches of an `if`; assigned and read in a loop over a map (a callback) around or within them
//   their types    integers of all widths, bool, strings (on the stack, and too long for it), tuples (nested, long),
//                  records, structs of a script, arrays, pointers to variables
//   expressions    arithmetic, comparisons, && ||, ?:, blocks and `if` with a value, casts, sizeof, macros, functions
//                  (with a result of each kind; with loops), string functions, bswap, has_key, find, len
//   maps           scalar and keyed, keys of integers, strings, tuples, records; all aggregations but percentile and
//                  tseries; recent; lruhash; of threads; delete, clear, zero
//   output         print and printf, whose records nobody compares
//
// Not: predicates, several probes, arguments of probes, memory of the kernel or of programs, stacks, spans, exit and
// return within an action, imports, comptime.
std::string generate_program(uint32_t seed);

}  // namespace espy::differential
