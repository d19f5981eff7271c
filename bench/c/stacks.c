// stacks COUNT: waits for a line on standard input, then reads one byte of /dev/zero from COUNT different stacks, and
// waits for the end of standard input.
//
// A level of the stack is one of two calls of the same function: the bits of a number choose, so that each number has a
// stack of its own.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int zero;

__attribute__((noinline, noclone)) static int descend(unsigned long number, int levels) {
  char byte;
  int failed;

  if (levels == 0) return read(zero, &byte, 1) != 1;
  if (number & 1) {
    failed = descend(number >> 1, levels - 1);
    __asm__ volatile("nop" ::: "memory");
  } else {
    failed = descend(number >> 1, levels - 1);
    __asm__ volatile("" ::: "memory");
  }
  return failed;
}

int main(int argc, char** argv) {
  unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
  int levels = 0;
  char byte;

  zero = open("/dev/zero", O_RDONLY);
  while (1UL << levels < count) levels++;
  if (zero < 0 || read(STDIN_FILENO, &byte, 1) != 1) return 1;
  for (unsigned long i = 0; i < count; i++)
    if (descend(i, levels)) return 1;
  puts("done");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) == 1) continue;
  return 0;
}
