#include "symbols/watched.h"

#include <algorithm>
#include <utility>

namespace espy::symbols {

namespace {

constexpr size_t kMaxProcesses = 65536;
constexpr size_t kMaxPrograms = 8;  // that one process executes
constexpr size_t kMaxMappings = 5000;
constexpr size_t kMaxAllMappings = 1 << 20;
constexpr int kMaxAncestors = 64;

}  // namespace

// Those that are alive, and those that were looked up, have snapshots as well.
void WatchedProcesses::make_room() {
  if (processes_.size() >= kMaxProcesses) clear();
}

void WatchedProcesses::clear() {
  processes_.clear();
  mapping_count_ = 0;
}

AddressSpace& WatchedProcesses::current_space(uint32_t pid) {
  Watched& watched = processes_[pid];
  if (watched.spaces.empty()) watched.spaces.emplace_back();
  return watched.spaces.back();
}

void WatchedProcesses::start(uint32_t pid, uint32_t parent) {
  make_room();
  // The id may have been that of another process, whose stacks are still to be shown.
  if (processes_.contains(pid)) execute(pid);
  processes_[pid].parent = parent;
}

void WatchedProcesses::execute(uint32_t pid) {
  if (!processes_.contains(pid)) make_room();
  std::vector<AddressSpace>& spaces = processes_[pid].spaces;
  if (spaces.size() >= kMaxPrograms) spaces.erase(spaces.begin());
  spaces.emplace_back();
}

void WatchedProcesses::map(uint32_t pid, Mapping mapping) {
  if (++mapping_count_ > kMaxAllMappings) clear();
  if (!processes_.contains(pid)) make_room();
  std::vector<CodeMapping>& code = current_space(pid).code;
  std::erase_if(code, [&](const CodeMapping& each) {
    return each.mapping.start < mapping.end && mapping.start < each.mapping.end;
  });
  if (code.size() >= kMaxMappings) return;
  const auto behind =
      std::ranges::upper_bound(code, mapping.start, {}, [](const CodeMapping& each) { return each.mapping.start; });
  code.insert(behind, {.mapping = std::move(mapping)});
}

void WatchedProcesses::end(uint32_t pid) {
  if (processes_.contains(pid)) ended_.push_back(pid);
}

void WatchedProcesses::keep(uint32_t pid) {
  for (int i = 0; i < kMaxAncestors; ++i) {
    const auto found = processes_.find(pid);
    if (found == processes_.end() || std::exchange(found->second.is_kept, true)) return;
    pid = found->second.parent;
  }
}

void WatchedProcesses::forget_ended() {
  for (const uint32_t pid : ended_before_)
    if (const auto found = processes_.find(pid); found != processes_.end() && !found->second.is_kept)
      processes_.erase(found);
  ended_before_ = std::exchange(ended_, {});
}

CodeMapping* WatchedProcesses::find(uint32_t pid, uint64_t address) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return nullptr;
  std::vector<AddressSpace>& spaces = found->second.spaces;
  for (auto space = spaces.rbegin(); space != spaces.rend(); ++space)
    if (CodeMapping* code = space->find(address)) return code;
  return nullptr;
}

uint32_t WatchedProcesses::parent_of(uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? 0 : found->second.parent;
}

}  // namespace espy::symbols
