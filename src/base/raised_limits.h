// Limits that this process raises for itself: the programs that it starts get those that it was given.
#pragma once

#include <sys/resource.h>

namespace espy {

// Raises a limit of getrlimit(2) to `least`, if it is lower. Returns false if that is not allowed; then it is raised as
// far as it may be.
bool raise_limit(int resource, rlim_t least);

// Between fork and exec: sets back the limits that were raised.
void restore_limits();

// While it lives, the soft limits are those before, for posix_spawn(3). The hard ones stay: who has given up his rights
// could not raise them again.
class RestoredLimits {
 public:
  RestoredLimits();
  ~RestoredLimits();
  RestoredLimits(const RestoredLimits&) = delete;
  RestoredLimits& operator=(const RestoredLimits&) = delete;
};

}  // namespace espy
