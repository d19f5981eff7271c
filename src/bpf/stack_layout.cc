// Stack layout.
//
// The stack has 512 bytes, so objects that are never live at the same time share bytes. For spilled registers this is
// exact: loads and stores are their only uses (live_ranges.h). The address of a slot can be in registers and arguments
// of calls; `slot_ranges` tracks it through sums and block parameters, and treats a slot as live everywhere if its
// address is stored to memory or escapes otherwise.
#include "bpf/stack_layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "bpf/live_ranges.h"
#include "bpf/slot_ranges.h"

namespace espy::bpf {
namespace {

// Eight bytes of the stack: the segments of the code in which they are taken, by start, with their ends.
using Taken = std::map<uint32_t, uint32_t>;

bool is_free(const Taken& taken, const Range& range) {
  return std::ranges::none_of(range, [&](const Segment& segment) {
    const auto next = taken.lower_bound(segment.start);
    return (next != taken.end() && next->first < segment.end) ||
           (next != taken.begin() && std::prev(next)->second > segment.start);
  });
}

// The stack below `base`, in units of eight bytes. It grows as needed.
class Units {
 public:
  // Takes the first `count` units that are free in the whole range; returns the number of the first.
  size_t take(size_t count, const Range& range) {
    size_t first = 0;
    for (size_t unit = 0; unit < first + count; ++unit)
      if (unit < taken_.size() && !is_free(taken_[unit], range)) first = unit + 1;
    if (taken_.size() < first + count) taken_.resize(first + count);
    for (size_t unit = first; unit < first + count; ++unit)
      for (const Segment& segment : range) taken_[unit].emplace(segment.start, segment.end);
    return first;
  }
  size_t size() const { return taken_.size(); }

 private:
  std::vector<Taken> taken_;
};

// First fit, largest first: places each object at the first position that no object with an overlapping live range
// occupies. Returns the number of bytes used below `base`.
uint32_t place_by_ranges(std::vector<StackObject>& objects, uint32_t first, const std::vector<Range>& ranges,
                         uint32_t base) {
  constexpr uint32_t kUnitBytes = 8;
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return objects[first + a].size_bytes > objects[first + b].size_bytes;
  });
  Units units;
  for (uint32_t item : order) {
    if (ranges[item].empty()) continue;
    StackObject& object = objects[first + item];
    const uint32_t count = (std::max(object.size_bytes, 1u) + kUnitBytes - 1) / kUnitBytes;
    const auto end = static_cast<uint32_t>(units.take(count, ranges[item])) + count;
    object.offset = -static_cast<int32_t>(base + end * kUnitBytes);
  }
  return static_cast<uint32_t>(units.size()) * kUnitBytes;
}

}  // namespace

void place_objects(const ir::Function& function, MachineFunction& machine) {
  uint32_t bytes = place_by_ranges(machine.objects, 0, slot_ranges(function), 0);
  uint32_t spilled = static_cast<uint32_t>(machine.objects.size()) - machine.slot_count;
  bytes +=
      place_by_ranges(machine.objects, machine.slot_count, live_ranges(machine, spilled, touch_spill_slots), bytes);
  machine.stack_bytes = bytes;
}

}  // namespace espy::bpf
