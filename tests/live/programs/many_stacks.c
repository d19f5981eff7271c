// many_stacks FILE WAVES: reads lines from a file; for each, calls getppid(2) from 100 stacks that it has not had before,
// until it has done so WAVES times.
//
// A level of the stack is one of two calls of the same function: the bits of a number choose.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kLevels = 16, kWave = 100 };

__attribute__((noinline, noclone)) static void descend(unsigned number, int levels) {
  if (levels == 0) {
    getppid();
    return;
  }
  if (number & 1) {
    descend(number >> 1, levels - 1);
    __asm__ volatile("nop" ::: "memory");
  } else {
    descend(number >> 1, levels - 1);
    __asm__ volatile("" ::: "memory");
  }
}

int main(int argc, char** argv) {
  FILE* lines = argc == 3 ? fopen(argv[1], "r") : NULL;
  unsigned waves = lines ? (unsigned)atoi(argv[2]) : 0;
  char line[64];

  for (unsigned wave = 0; wave < waves && fgets(line, sizeof(line), lines); wave++)
    for (unsigned i = 0; i < kWave; i++) descend(wave * kWave + i, kLevels);
  return 0;
}
