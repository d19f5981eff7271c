// One run in a process of its own: what it wrote, and how it ended. A crash or an endless loop is a result like others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"

namespace espy::golden {

struct Outcome {
  std::string out;
  std::string err;
  int status = 0;  // exit status; 128 + N for signal N
  bool timed_out = false;
};

// Makes this process the one that all descendants fall to when their parents end, whatever groups and sessions they are
// in; and has SIGINT, SIGTERM and SIGHUP wait until a child runs, when they end all of these and then us. Once, at
// first.
void own_descendants();
void end_descendants();  // kills them, and waits until they are gone

// A descriptor that can be read once SIGINT, SIGTERM or SIGHUP wants this process to end. After own_descendants().
OwnedFd open_end_signals();
// Reads it, ends all descendants, and ends this process by that signal.
[[noreturn]] void end_by(const OwnedFd& signals);

// Runs `body` in a child and exits with what it gives.
Outcome run_child(const std::function<int()>& body, uint32_t timeout_ms);
// Runs a program; `directory` is where.
Outcome run_program(const std::vector<std::string>& argv, const std::string& directory,
                    const std::vector<std::pair<std::string, std::string>>& environment, uint32_t timeout_ms);

}  // namespace espy::golden
