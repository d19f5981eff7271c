// Maps that are keyed by stacks, as lists of frames with a weight: what folded lines and flame graphs are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "output/format.h"
#include "output/sink.h"

namespace espy::output {

enum class FrameKind : uint8_t { kText, kUser, kInlined, kKernel, kUnknown };

struct FoldedFrame {
  std::string name;
  FrameKind kind = FrameKind::kText;
  auto operator<=>(const FoldedFrame&) const = default;
};

// From the outside in.
struct FoldedStack {
  std::vector<FoldedFrame> frames;
  uint64_t weight = 0;
};

// True if a stack is in the map's keys.
bool has_stacks(const MapView& map);

// One for each entry: what else is in the key (a comm, say) first, then the user's frames, then the kernel's, whatever
// their order in the key. The weight is the number that the value is: a count, a sum, an average, what a histogram
// counted; entries that have none above 0 are left out.
std::vector<FoldedStack> fold_stacks(const MapView& map, const TextStyle& style);

}  // namespace espy::output
