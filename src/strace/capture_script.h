// The script of `espy strace`: the system calls, signals and ends of the traced tasks as records, with copies of the
// memory that arguments point to. It is made of fixed templates and numbers.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "strace/call_table.h"

namespace espy::strace {

struct CaptureWishes {
  std::bitset<CallTable::kNumbers> calls;  // which are shown
  bool is_all = true;                      // each call is shown, also one without a name
  bool has_memory = true;                  // false: only numbers, for a summary
  uint32_t text_bytes = 32;                // of a text or buffer that is shown
};

// The marks with which the texts of its printf() begin. The values of each record are:
// - kEnterMark: tid, pid, time in ns, number, whether the call is one of 32-bit code, six arguments
// - kLeaveMark: tid, pid, time in ns, number, result
// - kTextMark: tid, address, the first byte, the text at the address up to its NUL
// - kBytesMark: tid, address, the bytes there
// - kCountedMark: tid, number of texts of Capture::kCount, or of entries of Capture::kEntries, or kUnknownCount
// - kSignalMark: tid, pid, time in ns, signal, siginfo
// - kIgnoredMark: the process that would get it, signal, time in ns, siginfo: a signal that the process ignores
// - kEndedMark: tid, pid, time in ns, exit code of the task
// - kRenamedMark: the tid before execve(), and since; they differ if the thread was not the first
// The memory that a call points to precedes its kEnterMark or kLeaveMark.
constexpr std::string_view kEnterMark = "st:E", kLeaveMark = "st:X", kTextMark = "st:T", kBytesMark = "st:B",
                           kCountedMark = "st:N", kSignalMark = "st:S", kIgnoredMark = "st:G", kEndedMark = "st:D",
                           kRenamedMark = "st:R";
constexpr uint64_t kUnknownCount = 10'000;

constexpr uint32_t kMostPathBytes = 4 << 10;
constexpr uint32_t kMostElements = 32;  // of an array

std::string write_capture_script(const CallTable& table, const CaptureWishes& wishes);

}  // namespace espy::strace
