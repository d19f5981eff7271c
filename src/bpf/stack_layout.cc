// Stack layout.
//
// The stack has 512 bytes, so objects that are never live at the same time share bytes. For spilled registers this is
// exact: loads and stores are their only uses (live_ranges.h). The address of a slot can be in registers and arguments
// of calls; `slot_ranges` tracks it through sums and block parameters, and treats a slot as live everywhere if its
// address is stored to memory or escapes otherwise.
#include "bpf/stack_layout.h"

#include <algorithm>
#include <numeric>

#include "bpf/live_ranges.h"
#include "bpf/slot_ranges.h"

namespace espy::bpf {
namespace {

constexpr uint32_t align_up(uint32_t bytes, uint32_t align) { return (bytes + align - 1) / align * align; }

struct Placed {
  uint32_t start, end;  // in bytes below `base`
  uint32_t object;
};

// First fit, largest first: places each object at the first position that no object with an overlapping live range
// occupies. Returns the number of bytes used below `base`.
uint32_t place_by_ranges(std::vector<StackObject>& objects, uint32_t first, const std::vector<Range>& ranges,
                         uint32_t base) {
  std::vector<uint32_t> order(ranges.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return objects[first + a].size_bytes > objects[first + b].size_bytes;
  });
  std::vector<Placed> placed;  // ascending by start
  uint32_t used = 0;
  for (uint32_t item : order) {
    if (ranges[item].empty()) continue;
    StackObject& object = objects[first + item];
    uint32_t size = align_up(std::max(object.size_bytes, 1u), 8);
    uint32_t at = 0;
    for (const Placed& other : placed) {
      if (other.start >= at + size) break;
      if (other.end > at && overlap(ranges[other.object], ranges[item])) at = other.end;
    }
    Placed place{at, at + size, item};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), place,
                                   [](const Placed& a, const Placed& b) { return a.start < b.start; }),
                  place);
    used = std::max(used, at + size);
    object.offset = -static_cast<int32_t>(base + at + size);
  }
  return used;
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
