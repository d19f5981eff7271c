// Whether the run goes on: the exit that was requested, and the words of `globals` by which programs learn of it.
#pragma once

#include <cstdint>

#include "load/machine.h"
#include "program/program.h"

namespace espy::runtime {

class RunControl {
 public:
  RunControl(load::Machine& machine, const program::Program& program) : machine_(machine), program_(program) {}

  // The first request sets the exit status, later ones are ignored.
  void request_exit(int status);
  bool is_exit_requested() const { return is_exit_requested_; }
  // Of the first request; if the record of exit() was lost, of the last program that called it; otherwise 0.
  int exit_status() const;

  // True if a program called exit() or stop_programs() was called. exit() sets the flag and also sends a record, which
  // may have been lost.
  bool has_exit_flag() const;
  // Sets the exit flag: from now on every program returns at once, except those that run after exit.
  void stop_programs();
  // Clears the request, its status and the exit flag.
  void reset();
  // Sets the start of `elapsed` to now.
  void start_clock();

 private:
  uint64_t load(uint32_t offset_bytes) const;
  void store(uint32_t offset_bytes, uint64_t value);

  load::Machine& machine_;
  const program::Program& program_;
  bool is_exit_requested_ = false;
  int exit_status_ = 0;
};

}  // namespace espy::runtime
