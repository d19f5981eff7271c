// ExecReport: by which a forked child tells its parent that it could not execute a program.
#pragma once

#include <optional>

#include "base/fd.h"
#include "base/result.h"

namespace espy {

// A pipe whose writing end closes when the child executes its program.
class ExecReport {
 public:
  // To be called before the fork.
  static Result<ExecReport> make();

  // In the child: reports the errno of exec(3) and exits with status 127.
  [[noreturn]] void exit_with(int code);
  // In the parent: to be called after the fork, before `wait`.
  void close_writing_end() { writing_.reset(); }
  // In the parent: waits until the child has executed its program, or ended. Returns the errno that it reported; 0 if
  // none; nullopt if `is_over` became true before.
  std::optional<int> wait(bool (*is_over)());

 private:
  ExecReport(int reading, int writing) : reading_(reading), writing_(writing) {}

  OwnedFd reading_;
  OwnedFd writing_;
};

}  // namespace espy
