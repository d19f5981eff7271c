// The data of a recording (docs/recording.md): what Writer takes and Reader gives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espy::recording {

enum class FieldKind : uint8_t { kNumber, kText };

struct Field {
  std::string name;
  FieldKind kind = FieldKind::kNumber;
  bool operator==(const Field&) const = default;
};

// A probe that was recorded. A text that an argument points to follows the argument, with the same name.
struct Probe {
  std::string name;  // "tracepoint:syscalls:sys_enter_openat"
  std::vector<Field> fields;
  bool operator==(const Probe&) const = default;
};

struct Tracepoint {
  std::string category, event;
  std::string format;  // events/CATEGORY/EVENT/format of tracefs
  bool operator==(const Tracepoint&) const = default;
};

// The machine and the run that were recorded.
struct Description {
  std::string espy_version;
  std::string command;  // the command line of the recording
  std::string kernel_release;
  std::string arch;
  uint32_t page_size_bytes = 0;
  uint32_t cpu_count = 0;        // possible CPUs
  uint64_t started_ns = 0;       // CLOCK_BOOTTIME
  uint64_t started_wall_ns = 0;  // CLOCK_REALTIME at the same time
  uint32_t max_text_bytes = 0;   // of a text, with its NUL
  std::vector<Tracepoint> tracepoints;
  std::vector<Probe> probes;
  bool operator==(const Description&) const = default;
};

struct Task {
  uint32_t pid = 0, tid = 0;
  uint32_t uid = 0, gid = 0;
  uint64_t cgroup = 0;
  std::string comm;
  bool operator==(const Task&) const = default;
};

struct Value {
  int64_t number = 0;     // FieldKind::kNumber
  std::string_view text;  // FieldKind::kText: without its NUL
};

}  // namespace espy::recording
