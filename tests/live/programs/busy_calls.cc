// Calls `work` back to back for a number of milliseconds, some microseconds each, and prints how often.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

uint64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

// Its first instruction is one that the kernel emulates.
extern "C" __attribute__((noinline, noclone, patchable_function_entry(1))) uint64_t work(uint64_t rounds) {
  uint64_t sum = rounds;
  for (uint64_t i = 0; i < rounds; ++i) asm volatile("" : "+r"(sum) : "r"(i));
  return sum;
}

int main(int argc, char** argv) {
  const uint64_t ms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const uint64_t rounds = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 5000;
  const uint64_t begin_ns = now_ns();
  uint64_t calls = 0;
  while (now_ns() - begin_ns < ms * 1'000'000) {
    for (int i = 0; i < 10; ++i) work(rounds);
    calls += 10;
  }
  std::printf("calls %llu\n", static_cast<unsigned long long>(calls));
  return 0;
}
