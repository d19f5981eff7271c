#include "base/end_request.h"

#include <time.h>

#include <atomic>

namespace espy {

namespace {

std::atomic<uint64_t> requested_at_ns = 0;  // 0: not requested
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

uint64_t monotonic_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void request_end() {
  uint64_t none = 0;
  requested_at_ns.compare_exchange_strong(none, monotonic_ns());
}

void reset_end_request() { requested_at_ns = 0; }

bool is_end_requested() { return requested_at_ns.load(std::memory_order_relaxed) != 0; }

uint64_t ns_since_end_request() { return is_end_requested() ? monotonic_ns() - requested_at_ns : 0; }

uint64_t end_requested_at_ns() { return requested_at_ns.load(std::memory_order_relaxed); }

}  // namespace espy
