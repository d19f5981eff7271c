#include "lsp/probe_names.h"

#include <algorithm>

#include "base/strings.h"

namespace espy::lsp {
namespace {

constexpr size_t kMostLists = 32;

}  // namespace

// `head` is "kprobe", or "uprobe:/bin/bash".
const std::vector<std::string>& ProbeNames::list(const std::string& head) {
  if (const auto known = lists_.find(head); known != lists_.end()) return known->second;
  if (lists_.size() >= kMostLists) lists_.clear();
  std::vector<std::string>& out = lists_[head];
  const size_t colon = head.find(':');
  const spec::Provider* provider = services_.registry.find_provider(head.substr(0, colon));
  if (!provider || !provider->list) return out;
  std::vector<std::string> parts;
  if (colon != head.npos) parts = {head.substr(colon + 1), "*"};
  out = services_.list(*provider, parts);
  // As the user spells the provider: lists have its name, not its alias.
  const std::string name(provider->name);
  for (std::string& each : out)
    if (each.starts_with(name + ":")) each = head.substr(0, colon) + each.substr(name.size());
  std::ranges::sort(out);
  return out;
}

bool ProbeNames::list_ahead() {
  if (lists_.size() >= kMostLists) return false;
  for (const spec::Provider* provider : services_.registry.providers()) {
    if (!provider->list || provider->needs_target_to_list || lists_.contains(provider->name)) continue;
    list(std::string(provider->name));
    return true;
  }
  return false;
}

std::vector<std::string> ProbeNames::with_prefix(const std::string& prefix, size_t most) {
  const size_t colon = prefix.find(':');
  if (colon == prefix.npos) return {};
  const spec::Provider* provider = services_.registry.find_provider(prefix.substr(0, colon));
  if (!provider) return {};
  size_t end_of_head = colon;
  if (provider->needs_target_to_list) end_of_head = prefix.find(':', colon + 1);
  if (end_of_head == prefix.npos) return {};
  const std::vector<std::string>& all = list(prefix.substr(0, end_of_head));
  std::vector<std::string> out;
  for (auto each = std::ranges::lower_bound(all, prefix); each != all.end() && each->starts_with(prefix); ++each) {
    if (out.size() == most) break;
    out.push_back(*each);
  }
  return out;
}

}  // namespace espy::lsp
