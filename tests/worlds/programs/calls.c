// calls COUNT [ANYTHING]: calls `tick` COUNT times and says "called"; with ANYTHING again after each line of stdin.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) void tick(int n) { __asm__ volatile("" ::"r"(n) : "memory"); }

#ifndef STATUS
#define STATUS 7  // tells which of the two programs has run
#endif

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 1;
  char line[16];
  do {
    for (int i = 0; i < count; ++i) tick(i);
    printf("called\n");
    fflush(stdout);
  } while (argc > 2 && fgets(line, sizeof(line), stdin) != NULL);
  return STATUS;
}
