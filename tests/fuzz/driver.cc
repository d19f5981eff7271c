#include "driver.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

namespace espy::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxInputBytes = 1 << 20;
constexpr int kWatchMs = 20;              // how often the parent looks for progress
constexpr uint64_t kMaxMemoryMib = 1024;  // with the memory that a sanitizer has not reused yet
// Of one input: CPU time with sanitizers, which does not depend on what else runs; and time on the clock, if it waits.
constexpr auto kHang = std::chrono::seconds(20);
constexpr auto kHangAsleep = std::chrono::minutes(10);

// Seen by the parent when the child is gone.
struct Shared {
  Counts counts;
  std::atomic<uint64_t> input_size;
  char input[kMaxInputBytes];
};

Shared* make_shared_memory() {
  void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return new (at) Shared();
}

void run_child(Shared& shared, const Target& target, uint32_t seed, Clock::time_point end) {
  Random random(seed);
  for (size_t i = 0; i < target.inputs_per_child && Clock::now() < end; ++i) {
    const std::string input = target.next(random);
    shared.input_size = std::min(input.size(), kMaxInputBytes);
    std::memcpy(shared.input, input.data(), shared.input_size);
    target.try_one(input, shared.counts);
    ++shared.counts.tries;
  }
}

// Returns the memory that a process uses, in MiB; 0 if it has ended.
uint64_t memory_mib(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/statm");
  uint64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) >> 20;
}

// Returns the CPU time that a process has taken; 0 if it has ended.
std::chrono::nanoseconds cpu_time(pid_t process) {
  clockid_t clock = 0;
  timespec now = {};
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &now) != 0) return {};
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::string stop_child(pid_t child, int handle, const char* why) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(handle);
  return why;
}

// How the child ended: "" well.
std::string watch_child(pid_t child, const Shared& shared) {
  const uint64_t memory_before = memory_mib(child);
  uint64_t last = shared.counts.tries;
  Clock::time_point since = Clock::now();
  std::chrono::nanoseconds cpu_since = {};
  int status = 0;
  const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd ended = {handle, POLLIN, 0};
  while (::waitpid(child, &status, WNOHANG) == 0) {
    ::poll(&ended, 1, kWatchMs);
    if (const uint64_t now = shared.counts.tries; now != last) {
      last = now;
      since = Clock::now();
      cpu_since = cpu_time(child);
    } else if (cpu_time(child) - cpu_since > kHang || Clock::now() - since > kHangAsleep) {
      return stop_child(child, handle, "hangs");
    }
    if (memory_mib(child) > memory_before + kMaxMemoryMib) return stop_child(child, handle, "takes too much memory");
  }
  ::close(handle);
  if (WIFSIGNALED(status)) return std::string("ended by ") + ::strsignal(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "failed";
}

// Returns NAME-failure-N of the directory in $FUZZ_FAILURES, or else of this one, that does not exist yet.
std::string next_failure(const char* name) {
  const char* named = std::getenv("FUZZ_FAILURES");
  const std::string prefix = (named != nullptr ? std::string(named) + "/" : "") + name + "-failure-";
  int number = 1;
  while (std::filesystem::exists(prefix + std::to_string(number))) ++number;
  return prefix + std::to_string(number);
}

}  // namespace

std::string read_whole(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int drive(const char* name, int seconds, uint32_t seed, const Target& target) {
  Shared& shared = *make_shared_memory();
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  int failures = 0;
  for (; Clock::now() < end; ++seed) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      run_child(shared, target, seed, end);
      std::exit(0);
    }
    const std::string failure = watch_child(child, shared);
    if (failure.empty()) continue;
    const std::string path = next_failure(name);
    ++failures;
    std::ofstream(path).write(shared.input, static_cast<std::streamsize>(shared.input_size.load()));
    std::printf("%s: %s, input in %s\n", name, failure.c_str(), path.c_str());
  }
  std::printf("%s: %llu inputs", name, static_cast<unsigned long long>(shared.counts.tries));
  for (size_t i = 0; i < target.count_names.size(); ++i)
    std::printf(", %llu %s", static_cast<unsigned long long>(shared.counts.of[i]), target.count_names[i].c_str());
  std::printf(", %d failures\n", failures);
  return failures;
}

}  // namespace espy::fuzz

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of the sanitizers
// A buffer above 512 MiB ends the input that asks for it.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=512:allocator_may_return_null=0:quarantine_size_mb=64";
}
// What is undefined ends the input that did it, as an access out of bounds does.
extern "C" const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
