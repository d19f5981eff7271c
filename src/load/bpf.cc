#include "load/bpf.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <new>

#include "base/process.h"

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

// Jobs with equal places end together; so many are never open at a time.
struct LinkCloser::Progress {
  static constexpr size_t kPlaces = 1024;
  std::atomic<uint32_t> open[kPlaces] = {};  // descriptors of a job
  std::atomic<uint32_t>& of(uint64_t job) { return open[job % kPlaces]; }
};

namespace {

constexpr int kProcesses = 4;  // links of a script that are closed at a time; a script seldom has more

struct Order {
  int descriptor;
  uint32_t place;  // of its job
};

constexpr ChildOptions kCloserOptions = {
    .shares_descriptors = true, .parent_end_signal = SIGKILL, .failure = "cannot start a process that closes links"};

using Closed = std::function<void(uint32_t place)>;

// In each of the processes: takes the next order that there is.
int close_by_order(int orders, const Closed& closed) {
  Order order = {};
  while (::read(orders, &order, sizeof(order)) == static_cast<ssize_t>(sizeof(order))) {
    ::close(order.descriptor);
    closed(order.place);
  }
  return EXIT_SUCCESS;
}

// In the first process, which starts the others.
int close_all(int orders, const Closed& closed) {
  block_all_signals();
  ::setpriority(PRIO_PROCESS, 0, -20);  // what waits to be closed still takes time of others
  for (int i = 1; i < kProcesses; ++i)
    if (!start_child([&] { return close_by_order(orders, closed); }, kCloserOptions)) break;
  return close_by_order(orders, closed);
}

}  // namespace

Result<std::unique_ptr<LinkCloser>> LinkCloser::start() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  OwnedFd from(ends[0]), to(ends[1]);
  void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno("cannot share memory with a process", errno);
  auto* progress = new (memory) Progress;
  // The table of descriptors is the same: the processes keep both ends of the pipe open.
  const auto close = [&] { return close_all(from.get(), [&](uint32_t place) { --progress->of(place); }); };
  const Result<pid_t> child = start_child(close, kCloserOptions);
  if (!child) {
    ::munmap(memory, sizeof(Progress));
    return tl::unexpected(child.error());
  }
  return std::unique_ptr<LinkCloser>(new LinkCloser(std::move(from), std::move(to), progress, *child));
}

// They may be in the middle of closing; nothing waits for them.
LinkCloser::~LinkCloser() {
  ::kill(process_, SIGKILL);
  ::munmap(progress_, sizeof(Progress));
}

std::optional<uint64_t> LinkCloser::close_soon(std::span<const int> descriptors) {
  const uint64_t job = ++jobs_;
  progress_->of(job) += static_cast<uint32_t>(descriptors.size());
  for (const int fd : descriptors) {
    const Order order{fd, static_cast<uint32_t>(job % Progress::kPlaces)};
    if (::write(orders_.get(), &order, sizeof(order)) != static_cast<ssize_t>(sizeof(order))) return std::nullopt;
  }
  return job;
}

bool LinkCloser::has_closed(uint64_t job) const { return progress_->of(job) == 0; }

}  // namespace espy::load
