#include "base/clock.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "base/files.h"

namespace espy {

namespace {

struct Offsets {
  int64_t monotonic_ns = 0;
  int64_t boot_ns = 0;
};

// What clock_gettime(2) adds to the kernel's time in this process's time namespace (time_namespaces(7)).
Offsets read_offsets() {
  constexpr ino_t kFirstNamespace = 0xEFFFFFFA;  // PROC_TIME_INIT_INO in include/linux/proc_ns.h
  struct stat own = {};
  Offsets out;
  if (::stat("/proc/self/ns/time", &own) != 0 || own.st_ino == kFirstNamespace) return out;
  const std::string text = read_file("/proc/self/timens_offsets").value_or("");
  const char* rest = text.c_str();
  char name[16] = "";
  long long seconds = 0, nanoseconds = 0;
  for (int read = 0; std::sscanf(rest, "%15s %lld %lld%n", name, &seconds, &nanoseconds, &read) == 3; rest += read) {
    const int64_t ns = seconds * static_cast<int64_t>(kNsPerSecond) + nanoseconds;
    if (std::strcmp(name, "monotonic") == 0) out.monotonic_ns = ns;
    if (std::strcmp(name, "boottime") == 0) out.boot_ns = ns;
  }
  return out;
}

const Offsets& offsets() {
  static const Offsets kOffsets = read_offsets();
  return kOffsets;
}

}  // namespace

int64_t time_namespace_offset_ns(clockid_t clock) {
  return clock == CLOCK_BOOTTIME ? offsets().boot_ns : clock == CLOCK_MONOTONIC ? offsets().monotonic_ns : 0;
}

uint64_t clock_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec) -
         static_cast<uint64_t>(time_namespace_offset_ns(clock));
}

}  // namespace espy
