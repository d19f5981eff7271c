#include "runtime/first_losses.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/end_request.h"

namespace espy::runtime {

FirstLosses::FirstLosses(load::Machine& machine, const program::Program& program, output::Sink& sink)
    : machine_(machine), program_(program), sink_(sink) {
  for (const program::LossCounter& counter : program.loss_counters) {
    const bool is_full = counter.kind == program::LossKind::kUpdate || counter.kind == program::LossKind::kStack;
    if (!is_full || counter.what.empty()) continue;
    auto same = std::ranges::find(waiting_, counter.what, &Loss::what);
    if (same == waiting_.end()) same = waiting_.insert(same, {counter.what, {}});
    same->offsets_bytes.push_back(counter.offset_bytes);
  }
}

void FirstLosses::look() {
  if (waiting_.empty() || monotonic_ns() < next_look_ns_) return;
  next_look_ns_ = monotonic_ns() + uint64_t{kIntervalMs} * 1'000'000;
  const auto globals = machine_.memory(program_.globals);
  std::erase_if(waiting_, [&](const Loss& loss) {
    uint64_t count = 0;
    for (const uint32_t offset : loss.offsets_bytes) count += load_le(globals, offset);
    if (count > 0) sink_.message("runtime_error", fmt::format("{}: {} so far", loss.what, count), "", 0, 0, 0);
    return count > 0;
  });
}

}  // namespace espy::runtime
