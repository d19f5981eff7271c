#include "symbols/watched.h"

#include <algorithm>
#include <utility>

namespace espy::symbols {

namespace {

constexpr size_t kMaxPrograms = 8;  // that one process executes
constexpr size_t kMaxWatchedMappings = 5000;
constexpr size_t kMaxAllMappings = 1 << 20;
constexpr size_t kMaxReplaced = 256;  // of one program
constexpr int kMaxWatchedAncestors = 64;

// A path can have 4 KB.
size_t weight_of(const CodeMapping& code) {
  constexpr size_t kPathBytes = 256;
  return 1 + code.image->path().size() / kPathBytes;
}

}  // namespace

size_t WatchedProcesses::weight_of(const Space& space) {
  size_t out = 0;
  for (const CodeMapping& code : space.mapped.code) out += symbols::weight_of(code);
  for (const Replaced& each : space.replaced) out += symbols::weight_of(each.code);
  return out;
}

WatchedProcesses::Processes::iterator WatchedProcesses::erase(Processes::iterator process) {
  for (const Space& space : process->second.spaces) weight_ -= weight_of(space);
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

void WatchedProcesses::start(uint32_t pid, uint32_t parent, uint64_t time_ns) {
  // The id may have been that of another process, whose stacks are still to be shown.
  if (processes_.contains(pid)) execute(pid, time_ns);
  Watched& process = find_or_add(pid);
  process.parent = parent;
  process.former_spaces = process.spaces.empty() ? 0 : process.spaces.size() - 1;
}

void WatchedProcesses::execute(uint32_t pid, uint64_t time_ns) {
  Watched& process = find_or_add(pid);
  std::vector<Space>& spaces = process.spaces;
  if (spaces.size() >= kMaxPrograms) {
    weight_ -= weight_of(spaces.front());
    spaces.erase(spaces.begin());
    if (process.former_spaces > 0) --process.former_spaces;
  }
  if (!spaces.empty()) spaces.back().until_ns = time_ns;
  spaces.emplace_back();
}

// What is mapped anew replaces what was there. The same code in parts, as the dynamic loader maps it, is not kept
// twice.
void WatchedProcesses::map(uint32_t pid, const Mapping& mapping, uint64_t time_ns) {
  if (weight_ >= kMaxAllMappings) drop_oldest();
  Watched& process = find_or_add(pid);
  if (process.spaces.empty()) process.spaces.emplace_back();
  Space& space = process.spaces.back();
  CodeMapping code = {.start = mapping.start, .image = images_.share(mapping), .seen_us = mapping.seen_ns / 1000};
  std::erase_if(space.mapped.code, [&](CodeMapping& each) {
    if (each.start >= code.end() || code.start >= each.end()) return false;
    const bool is_within = code.start <= each.start && each.end() <= code.end();
    if (is_within && is_same_code(each, code))
      weight_ -= symbols::weight_of(each);
    else
      space.replaced.push_back({std::move(each), time_ns});
    return true;
  });
  while (space.replaced.size() > kMaxReplaced) {
    weight_ -= symbols::weight_of(space.replaced.front().code);
    space.replaced.erase(space.replaced.begin());
  }
  if (space.mapped.code.size() >= kMaxWatchedMappings) return;
  weight_ += symbols::weight_of(code);
  space.mapped.add(std::move(code));
}

// What is not noted here is dropped as the oldest, later.
void WatchedProcesses::end(uint32_t pid) {
  if (processes_.contains(pid) && ended_.size() < max_processes_) ended_.push_back(pid);
}

// Those that it is a copy of count as used at the same time, so that none of them is dropped before it.
void WatchedProcesses::keep(uint32_t pid, uint64_t first_address_ns) {
  const uint64_t use = ++uses_;
  for (int i = 0; i < kMaxWatchedAncestors; ++i) {
    const auto found = processes_.find(pid);
    if (found == processes_.end()) return;
    if (i == 0 && !found->second.is_kept) drop_before(found->second, first_address_ns);
    found->second.is_kept = true;
    found->second.used_at = use;
    pid = found->second.parent;
  }
}

void WatchedProcesses::drop_before(Watched& process, uint64_t time_ns) {
  const auto is_over = [&](uint64_t until_ns) { return until_ns != 0 && until_ns < time_ns; };
  for (const Space& space : process.spaces) weight_ -= weight_of(space);
  while (process.spaces.size() > process.former_spaces + 1 && is_over(process.spaces[process.former_spaces].until_ns))
    process.spaces.erase(process.spaces.begin() + static_cast<ptrdiff_t>(process.former_spaces));
  for (Space& space : process.spaces) {
    std::erase_if(space.replaced, [&](const Replaced& each) { return is_over(each.until_ns); });
    weight_ += weight_of(space);
  }
}

void WatchedProcesses::forget_ended() {
  for (const uint32_t pid : ended_before_)
    if (const auto found = processes_.find(pid); found != processes_.end() && !found->second.is_kept) erase(found);
  ended_before_ = std::exchange(ended_, {});
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
