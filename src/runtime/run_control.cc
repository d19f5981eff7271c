#include "runtime/run_control.h"

#include <cstring>

namespace espy::runtime {

void RunControl::request_exit(int status) {
  if (is_exit_requested_) return;
  is_exit_requested_ = true;
  exit_status_ = status;
}

bool RunControl::has_exit_flag() const { return load(program_.exit_flag_offset) != 0; }

int RunControl::exit_status() const {
  return is_exit_requested_ ? exit_status_ : static_cast<int>(load(program_.exit_status_offset));
}

void RunControl::stop_programs() { store(program_.exit_flag_offset, program::kEndedByUserSpace); }

void RunControl::reset() {
  is_exit_requested_ = false;
  exit_status_ = 0;
  store(program_.exit_flag_offset, 0);
  store(program_.exit_status_offset, 0);
}

void RunControl::start_clock() { store(program_.start_offset, machine_.now_ns()); }

uint64_t RunControl::load(uint32_t offset_bytes) const {
  const auto globals = machine_.memory(program_.globals);
  uint64_t value = 0;
  if (!globals.empty()) std::memcpy(&value, globals.data() + offset_bytes, sizeof(value));
  return value;
}

void RunControl::store(uint32_t offset_bytes, uint64_t value) {
  const auto globals = machine_.memory(program_.globals);
  if (!globals.empty()) std::memcpy(globals.data() + offset_bytes, &value, sizeof(value));
}

}  // namespace espy::runtime
