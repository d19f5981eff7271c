// bells N: N rounds past USDT probes. espy:behind is there only while somebody counts its semaphore up; espy:places has
// three places; espy:operands has its arguments in memory, registers and constants of all sizes. Prints how often
// espy:behind was passed.
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {
unsigned short espy_behind_semaphore __attribute__((unused, section(".probes")));
unsigned short espy_places_semaphore __attribute__((unused, section(".probes")));
unsigned short espy_operands_semaphore __attribute__((unused, section(".probes")));
}

namespace {

struct Numbers {
  int8_t small = -3;
  uint16_t half = 65000;
  int32_t word = -70000;
  int64_t whole = int64_t{1} << 40;
};

inline __attribute__((always_inline)) void pass(long where) { DTRACE_PROBE1(espy, places, where); }

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 1;
  long behind = 0;
  Numbers numbers;
  const int32_t table[4] = {10, 20, 30, 40};
  volatile long index = 2;
  for (long i = 0; i < rounds; ++i) {
    pass(1);
    if (espy_behind_semaphore) {
      DTRACE_PROBE1(espy, behind, i);
      ++behind;
    }
    pass(2);
    asm volatile("" : : "m"(numbers), "m"(table));
    DTRACE_PROBE6(espy, operands, numbers.small, numbers.half, numbers.word, numbers.whole, table[index], 42);
    pass(3);
    ::usleep(1000);
  }
  std::printf("%ld behind, %d left\n", behind, espy_behind_semaphore);
}
