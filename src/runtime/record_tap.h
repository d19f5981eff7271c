// RecordTap: gets the records of a run as they are, instead of the builtins that have sent them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "program/program.h"
#include "runtime/record_decoder.h"

namespace espy::runtime {

class RecordTap {
 public:
  virtual ~RecordTap() = default;
  // Returns false for a record that its builtin is to handle.
  virtual bool take(const program::EventSchema& schema, std::span<const std::byte> record, RecordDecoder& decoder) = 0;
  // Records were lost since the last call.
  virtual void lost(uint64_t count) = 0;
  // Called whenever the rings were read. An error ends the run.
  virtual Status batch_end() = 0;
  // Called once there are no more. `incomplete`: sentences on what is missing in them, without the lost ones.
  virtual Status finish(std::span<const std::string> incomplete) = 0;
};

}  // namespace espy::runtime
