// The request to end the run. A signal makes it; whatever may wait for long looks at it.
#pragma once

#include <signal.h>

#include <cstdint>

namespace espy {

// The signals that ask a process to end.
inline constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

// Async-signal-safe. The first request counts.
void request_end();
void reset_end_request();
bool is_end_requested();

// How long ago the end was requested, and when, in CLOCK_MONOTONIC; 0 if it was not.
uint64_t ns_since_end_request();
uint64_t end_requested_at_ns();

// Reads CLOCK_MONOTONIC; async-signal-safe.
uint64_t monotonic_ns();

}  // namespace espy
