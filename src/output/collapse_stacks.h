// Maps keyed by stacks as collapsed stacks, lists of frames with a weight: the input of folded lines and flame graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "output/format.h"
#include "output/sink.h"

namespace espy::output {

enum class FrameKind : uint8_t { kText, kUser, kInlined, kKernel, kUnknown };

struct FoldedFrame {
  std::string name;  // printable, and different where the text of a program differs
  FrameKind kind = FrameKind::kText;
  auto operator<=>(const FoldedFrame&) const = default;
};

struct FoldedStack {
  std::vector<FoldedFrame> frames;  // outermost first
  uint64_t weight = 0;
};

// A key in its parts.
struct KeyStack {
  std::vector<const StackValue*> stacks;                     // the kernel's before those of the user: innermost first
  std::vector<std::pair<std::string, const Value*>> labels;  // the other parts, by their names
};
// `names`: MapView::key_names. A part without a name that is a word is "key", or "key2" as the second part.
KeyStack split_key(const Value& key, std::span<const std::string> names);

// Returns a value as a weight: of a histogram, the sum of its counts; 0 for a negative one.
uint64_t weight_of(const Value& value);

// Adds a weight of a profile or picture, which holds 2^63 - 1 at most.
inline void add_weight(uint64_t& sum, uint64_t weight) {
  if (__builtin_add_overflow(sum, weight, &sum) || sum > INT64_MAX) sum = INT64_MAX;
}

// True if the map's keys have a stack.
bool has_stacks(const MapView& map);

// Returns a stack for each entry: the other parts of the key (a comm, ...) first, then user frames, then kernel frames,
// in whatever order they have in the key. The weight is the value as a number (of a histogram, the sum of its counts);
// entries with a weight of 0 or less are skipped.
std::vector<FoldedStack> collapse_stacks(const MapView& map, const TextStyle& style);

// The frame's name as folded lines have it: a semicolon, which separates frames, is a colon, or, in a text that is no
// function, `\x3b`. With the suffixes of stackcollapse-perf.pl,
// `_[k]` for the kernel and `_[i]` for inlined functions.
std::string folded_name(const FoldedFrame& frame);

}  // namespace espy::output
