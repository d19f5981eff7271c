// A bound on the memory that a part of the work takes: libraries that read files of others can take many times the size
// of what they read, from a file that is small and compressed.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace espy {

// Returns the size of the process's writable private memory in bytes; 0 if unknown, without procfs.
uint64_t data_bytes();

// While it lives, the process cannot take more than `more_bytes` in addition (RLIMIT_DATA, getrlimit(2)): malloc() then
// fails, and `new` throws std::bad_alloc. Without effect where there is no procfs, and with sanitizers, whose
// allocators end the process.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t more_bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  uint64_t taken_bytes() const;  // since the limit was set
  static bool is_supported();

 private:
  uint64_t begin_bytes_;
  bool is_set_ = false;
  rlimit earlier_ = {};
};

}  // namespace espy
