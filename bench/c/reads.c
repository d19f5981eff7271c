// reads COUNT [DEPTH]: waits for a line on standard input, then reads COUNT times one byte of /dev/zero and prints how
// many nanoseconds that took altogether, and how many of them on a CPU. With DEPTH, that many calls below main.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int read_all(int fd, long count) {
  char byte;
  for (long i = 0; i < count; i++) {
    if (read(fd, &byte, 1) != 1) return 1;
  }
  return 0;
}

// Not a loop: what a level adds behind its call keeps its frame.
__attribute__((noinline, noclone)) static int descend(int fd, long count, long depth) {
  const int failed = depth <= 1 ? read_all(fd, count) : descend(fd, count, depth - 1);
  __asm__ volatile("" ::: "memory");
  return failed;
}

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 0;
  long depth = argc > 2 ? atol(argv[2]) : 0;
  int zero = open("/dev/zero", O_RDONLY);
  char byte;

  if (zero < 0 || read(STDIN_FILENO, &byte, 1) != 1) return 1;
  long start_ns = now_ns(CLOCK_MONOTONIC), start_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
  if ((depth > 0 ? descend(zero, count, depth) : read_all(zero, count)) != 0) return 1;
  printf("%ld %ld\n", now_ns(CLOCK_MONOTONIC) - start_ns, now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns);
  return 0;
}
