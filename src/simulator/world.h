// The world around a simulated program: who runs, on which CPU, at what time, with which stack. All of it scripted.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recording/recording.h"
#include "simulator/memory.h"

namespace espy::simulator {

constexpr uint64_t kStartNs = 1'000'000'000;  // of the clock, nanoseconds since boot
constexpr uint64_t kStepNs = 1'000'000;       // what passes between two events

struct Task {
  std::string comm = "golden";
  uint32_t pid = 1234;
  uint32_t tid = 1234;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t ppid = 1;
  uint64_t cgroup = 1;
};

struct World {
  Memory memory;
  Task task;
  uint32_t cpu = 0;
  uint64_t now_ns = kStartNs;
  std::optional<int64_t> wall_clock_offset_ns;  // load::Machine::wall_clock_offset_ns
  uint64_t random = 1;
  uint64_t cookie = 0;
  bool is_return = false;              // in a session
  uint64_t current_task = 0;           // address of a task_struct in foreign memory; 0: none was made
  std::vector<uint64_t> kernel_stack;  // innermost first
  std::vector<uint64_t> user_stack;
  uint64_t step_ns = kStepNs;  // what passes in a run of a program
  // The world is that of a recording: what it does not have was not recorded, and a program that asks for it is
  // stopped.
  bool is_recorded = false;
  const recording::FrameNames* frame_names = nullptr;
  bool has_task = true;  // of a recording: `task` is known
  bool has_kernel_stack = false, has_user_stack = false;
  // What programs did to the world, a line each: "signal 9", "override -1".
  std::vector<std::string> deeds;
};

}  // namespace espy::simulator
