// calls COUNT [DEPTH]: waits for a line on standard input, then calls `work` COUNT times and prints how many nanoseconds
// that took altogether, and how many of them on a CPU. DEPTH is ignored.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 500 };

static long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

// Some hundred nanoseconds. Its first instruction is one that the kernel emulates for a probe.
__attribute__((noinline, noclone, patchable_function_entry(1))) static void work(void) {
  static volatile long sum;
  for (int i = 0; i < ROUNDS; i++) sum = sum + i;
}

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 0;
  char byte;

  if (read(STDIN_FILENO, &byte, 1) != 1) return 1;
  long start_ns = now_ns(CLOCK_MONOTONIC), start_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  for (long i = 0; i < count; i++) work();
  printf("%ld %ld\n", now_ns(CLOCK_MONOTONIC) - start_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns);
  return 0;
}
