#include "symbols/watched.h"

#include <algorithm>
#include <utility>

namespace espy::symbols {

namespace {

constexpr size_t kMaxPrograms = 8;  // that one process executes
constexpr size_t kMaxWatchedMappings = 5000;
constexpr size_t kMaxAllMappings = 1 << 20;
constexpr int kMaxWatchedAncestors = 64;

// A path can have 4 KB.
size_t weight_of(const CodeMapping& code) {
  constexpr size_t kPathBytes = 256;
  return 1 + code.image->path().size() / kPathBytes;
}

size_t weight_of(const AddressSpace& space) {
  size_t out = 0;
  for (const CodeMapping& code : space.code) out += weight_of(code);
  return out;
}

}  // namespace

WatchedProcesses::Processes::iterator WatchedProcesses::erase(Processes::iterator process) {
  for (const AddressSpace& space : process->second.spaces) weight_ -= weight_of(space);
  return processes_.erase(process);
}

// A quarter at a time. Those that are alive have snapshots as well.
void WatchedProcesses::drop_oldest() {
  std::vector<uint64_t> uses;
  for (const auto& [pid, process] : processes_) uses.push_back(process.used_at);
  const auto quarter = uses.begin() + static_cast<ptrdiff_t>(uses.size() / 4);
  std::ranges::nth_element(uses, quarter);
  for (auto each = processes_.begin(); each != processes_.end();) {
    if (each->second.used_at > *quarter) {
      ++each;
      continue;
    }
    if (each->second.is_kept) on_dropped_(each->first);
    each = erase(each);
  }
}

void WatchedProcesses::clear() {
  processes_.clear();
  weight_ = 0;
}

WatchedProcesses::Watched& WatchedProcesses::find_or_add(uint32_t pid) {
  if (processes_.size() >= max_processes_ && !processes_.contains(pid)) drop_oldest();
  Watched& out = processes_[pid];
  out.used_at = ++uses_;
  return out;
}

void WatchedProcesses::start(uint32_t pid, uint32_t parent) {
  // The id may have been that of another process, whose stacks are still to be shown.
  if (processes_.contains(pid)) execute(pid);
  Watched& process = find_or_add(pid);
  process.parent = parent;
  process.former_spaces = process.spaces.empty() ? 0 : process.spaces.size() - 1;
}

void WatchedProcesses::execute(uint32_t pid) {
  Watched& process = find_or_add(pid);
  std::vector<AddressSpace>& spaces = process.spaces;
  if (spaces.size() >= kMaxPrograms) {
    weight_ -= weight_of(spaces.front());
    spaces.erase(spaces.begin());
    if (process.former_spaces > 0) --process.former_spaces;
  }
  spaces.emplace_back();
}

void WatchedProcesses::map(uint32_t pid, Mapping mapping) {
  if (weight_ >= kMaxAllMappings) drop_oldest();
  Watched& process = find_or_add(pid);
  if (process.spaces.empty()) process.spaces.emplace_back();
  AddressSpace& space = process.spaces.back();
  std::erase_if(space.code, [&](const CodeMapping& each) {
    const bool is_replaced = each.start < mapping.end && mapping.start < each.end();
    if (is_replaced) weight_ -= weight_of(each);
    return is_replaced;
  });
  if (space.code.size() >= kMaxWatchedMappings) return;
  const uint64_t start = mapping.start;
  CodeMapping code = {.start = start, .image = images_.share(mapping), .seen_us = mapping.seen_ns / 1000};
  weight_ += weight_of(code);
  space.add(std::move(code));
}

// What is not noted here is dropped as the oldest, later.
void WatchedProcesses::end(uint32_t pid) {
  if (processes_.contains(pid) && ended_.size() < max_processes_) ended_.push_back(pid);
}

// Those that it is a copy of count as used at the same time, so that none of them is dropped before it.
void WatchedProcesses::keep(uint32_t pid) {
  const uint64_t use = ++uses_;
  for (int i = 0; i < kMaxWatchedAncestors; ++i) {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) return;
    found->second.is_kept = true;
    found->second.used_at = use;
    pid = found->second.parent;
  }
}

void WatchedProcesses::forget_ended() {
  for (const uint32_t pid : ended_before_)
    if (const auto found = processes_.find(pid); found != processes_.end() && !found->second.is_kept) erase(found);
  ended_before_ = std::exchange(ended_, {});
}

CodeMapping* WatchedProcesses::find(uint32_t pid, uint64_t address) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return nullptr;
  std::vector<AddressSpace>& spaces = found->second.spaces;
  for (size_t i = spaces.size(); i > found->second.former_spaces; --i)
    if (CodeMapping* code = spaces[i - 1].find(address)) return code;
  return nullptr;
}

std::vector<CodeMapping*> WatchedProcesses::find_former(uint32_t pid, uint64_t address) {
  std::vector<CodeMapping*> out;
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return out;
  for (size_t i = found->second.former_spaces; i > 0; --i)
    if (CodeMapping* code = found->second.spaces[i - 1].find(address)) out.push_back(code);
  return out;
}

bool WatchedProcesses::has_former(uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() && found->second.former_spaces > 0;
}

uint32_t WatchedProcesses::parent_of(uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found == processes_.end() ? 0 : found->second.parent;
}

}  // namespace espy::symbols
