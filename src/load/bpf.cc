#include "load/bpf.h"

#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

namespace espy::load {

namespace {

// Kernels before 5.11 count the memory of maps and programs against RLIMIT_MEMLOCK, and fail with EPERM above it
// (bpf_charge_memlock in kernel/bpf/syscall.c). Returns true if the limit has been raised.
bool raise_memory_limit(Command command) {
  if (errno != EPERM || (command != Command::kMapCreate && command != Command::kProgLoad)) return false;
  const rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return ::setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0;
}

}  // namespace

long bpf(Command command, void* attr, size_t size) {
  const auto call = [&] { return ::syscall(__NR_bpf, static_cast<int>(command), attr, size); };
  long result = call();
  if (result < 0 && raise_memory_limit(command)) result = call();
  return result < 0 ? -errno : result;
}

std::string why_not_permitted() {
  if (::prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER)
    return "a seccomp filter, of a container for example, has to allow bpf(2) and perf_event_open(2)";
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_max != RLIM_INFINITY)
    return "espy needs root, or CAP_BPF and CAP_PERFMON, before Linux 5.11 also CAP_SYS_RESOURCE or `ulimit -l "
           "unlimited`";
  return "espy needs root, or the capabilities CAP_BPF and CAP_PERFMON";
}

void copy_name(char (&to)[kNameBytes], std::string_view name) {
  const size_t length = std::min<size_t>(name.size(), kNameBytes - 1);
  for (size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    to[i] = std::isalnum(c) != 0 || c == '_' || c == '.' ? static_cast<char>(c) : '_';
  }
  to[length] = '\0';
}

uint32_t number_of(program::ProgramKind kind) {
  switch (kind) {
    case program::ProgramKind::kSyscall: return BPF_PROG_TYPE_SYSCALL;
    case program::ProgramKind::kRawTracepoint: return BPF_PROG_TYPE_RAW_TRACEPOINT;
    case program::ProgramKind::kTracepoint: return BPF_PROG_TYPE_TRACEPOINT;
    case program::ProgramKind::kPerfEvent: return BPF_PROG_TYPE_PERF_EVENT;
    case program::ProgramKind::kKprobe: return BPF_PROG_TYPE_KPROBE;
    case program::ProgramKind::kTracingRawTracepoint:
    case program::ProgramKind::kFentry:
    case program::ProgramKind::kFexit:
    case program::ProgramKind::kIter: return BPF_PROG_TYPE_TRACING;
  }
  UNREACHABLE("program kind");
}

uint32_t number_of(program::MapKind kind) {
  switch (kind) {
    case program::MapKind::kArray: return BPF_MAP_TYPE_ARRAY;
    case program::MapKind::kPercpuArray: return BPF_MAP_TYPE_PERCPU_ARRAY;
    case program::MapKind::kHash: return BPF_MAP_TYPE_HASH;
    case program::MapKind::kPercpuHash: return BPF_MAP_TYPE_PERCPU_HASH;
    case program::MapKind::kLruHash: return BPF_MAP_TYPE_LRU_HASH;
    case program::MapKind::kLruPercpuHash: return BPF_MAP_TYPE_LRU_PERCPU_HASH;
    case program::MapKind::kStackTrace: return BPF_MAP_TYPE_STACK_TRACE;
    case program::MapKind::kTaskStorage: return BPF_MAP_TYPE_TASK_STORAGE;
    case program::MapKind::kCgroupArray: return BPF_MAP_TYPE_CGROUP_ARRAY;
    case program::MapKind::kArrayOfMaps: return BPF_MAP_TYPE_ARRAY_OF_MAPS;
  }
  UNREACHABLE("map kind");
}

}  // namespace espy::load
