// What the fuzzers share: a loop that makes inputs at random and tries them in a child process, so that a crash or a
// hang is told with its input and does not end the search.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace espy::fuzz {

using Random = std::mt19937;
inline uint32_t below(Random& random, size_t n) { return static_cast<uint32_t>(random() % (n ? n : 1)); }

// Counts that outlive the child; `tries` is also how the parent sees that the child is alive.
constexpr size_t kMaxCounts = 6;
struct Counts {
  std::atomic<uint64_t> tries;
  std::atomic<uint64_t> of[kMaxCounts];
};

struct Target {
  std::function<std::string(Random&)> next;
  // Aborts on what must not be.
  std::function<void(const std::string& input, Counts& counts)> try_one;
  std::vector<std::string> count_names;  // of Counts::of
  size_t inputs_per_child = 20000;       // each child ends in a search for leaks
};

// NAME SECONDS [...]: tries inputs for so long, starting anew after each failure. Prints what failed, writes it to
// NAME-failure-N, in the directory of $FUZZ_FAILURES if it is set, and returns how many did. `seed` starts the row of
// random numbers.
int drive(const char* name, int seconds, uint32_t seed, const Target& target);

std::string read_whole(const char* path);

}  // namespace espy::fuzz
