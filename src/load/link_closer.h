// LinkCloser: processes that close descriptors of this one. Closing the link of a function detaches it at once, and
// then waits for tens of milliseconds until no program of it runs any more; this process does not wait, and a link that
// waits does not hold up the next one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace espy::load {

class LinkCloser {
 public:
  // Starts the processes, which share the table of descriptors and end with this one.
  static Result<std::unique_ptr<LinkCloser>> start();
  LinkCloser(const LinkCloser&) = delete;
  LinkCloser& operator=(const LinkCloser&) = delete;
  ~LinkCloser();

  // Gives up ownership of descriptors. Returns the number of the job, which ends when all of them are closed; nullopt
  // if the processes have gone.
  std::optional<uint64_t> close_soon(std::span<const int> descriptors);
  bool has_closed(uint64_t job) const;

 private:
  struct Progress;  // shared with the processes
  LinkCloser(OwnedFd received, OwnedFd orders, Progress* progress, pid_t process)
      : received_(std::move(received)), orders_(std::move(orders)), progress_(progress), process_(process) {}

  OwnedFd received_;  // of the processes, which have the same table
  OwnedFd orders_;
  Progress* progress_;
  pid_t process_;  // the first, with which the others end
  uint64_t jobs_ = 0;
};

}  // namespace espy::load
