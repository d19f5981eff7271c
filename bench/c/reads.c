// reads COUNT: waits for a line on standard input, then reads COUNT times one byte of /dev/zero and prints how many
// nanoseconds that took altogether.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 0;
  int zero = open("/dev/zero", O_RDONLY);
  char byte;

  if (zero < 0 || read(STDIN_FILENO, &byte, 1) != 1) return 1;
  long start_ns = now_ns();
  for (long i = 0; i < count; i++) {
    if (read(zero, &byte, 1) != 1) return 1;
  }
  printf("%ld\n", now_ns() - start_ns);
  return 0;
}
