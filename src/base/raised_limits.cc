#include "base/raised_limits.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"

namespace espy {

namespace {

struct Raised {
  int resource = 0;
  rlimit before = {}, now = {};
};

std::array<Raised, 2> kept;
size_t kept_count = 0;

std::span<Raised> raised() { return std::span(kept).first(kept_count); }

void note(int resource, const rlimit& before, const rlimit& now) {
  const auto known = std::ranges::find(raised(), resource, &Raised::resource);
  if (known != raised().end()) {
    known->now = now;
    return;
  }
  CHECK(kept_count < kept.size());
  kept[kept_count++] = {resource, before, now};
}

}  // namespace

bool raise_limit(int resource, rlim_t least) {
  rlimit before = {};
  if (::getrlimit(resource, &before) != 0 || before.rlim_cur >= least) return true;
  rlimit now = {least, std::max(least, before.rlim_max)};
  const bool is_allowed = ::setrlimit(resource, &now) == 0;
  if (!is_allowed) now = {before.rlim_max, before.rlim_max};
  if (is_allowed || ::setrlimit(resource, &now) == 0) note(resource, before, now);
  return is_allowed;
}

void restore_limits() {
  for (const Raised& each : raised()) ::setrlimit(each.resource, &each.before);
}

RestoredLimits::RestoredLimits() {
  for (const Raised& each : raised()) {
    const rlimit limit = {each.before.rlim_cur, each.now.rlim_max};
    ::setrlimit(each.resource, &limit);
  }
}

RestoredLimits::~RestoredLimits() {
  for (const Raised& each : raised()) ::setrlimit(each.resource, &each.now);
}

}  // namespace espy
