// numbered COUNT: says that it is there, waits for a line, and calls work() and getppid(2) COUNT times.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline, noclone)) long work(long n) {
  __asm__ volatile("" : "+r"(n) : : "memory");
  return n;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 0;
  puts("there");
  fflush(stdout);
  if (getchar() == EOF) return 1;
  for (long i = 0; i < count; i++) {
    work(i);
    getppid();
  }
  puts("done");
  return 0;
}
