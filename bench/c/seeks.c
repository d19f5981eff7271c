// seeks COUNT DISTINCT: waits for a line on standard input, then calls lseek(2) COUNT times with the offsets 0 to
// DISTINCT - 1 in turn, and prints how many nanoseconds a call took: the mean of batches of 100, without the dearest
// twentieth of them, which other work on the machine has interrupted.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kBatch = 100 };

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int ascending(const void* left, const void* right) {
  const double a = *(const double*)left, b = *(const double*)right;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  const long count = argc == 3 ? atol(argv[1]) : 0, distinct = argc == 3 ? atol(argv[2]) : 0;
  const long batches = count / kBatch, kept = batches - batches / 20;
  const int zero = open("/dev/zero", O_RDONLY);
  double* costs = malloc((size_t)batches * sizeof(double));
  double sum = 0;
  char byte;

  if (batches < 1 || distinct < 1 || zero < 0 || !costs || read(STDIN_FILENO, &byte, 1) != 1) return 1;
  for (long i = 0; i < batches; i++) {
    const double start_ns = now_ns();
    for (long j = 0; j < kBatch; j++) lseek(zero, (i * kBatch + j) % distinct, SEEK_SET);
    costs[i] = (now_ns() - start_ns) / kBatch;
  }
  qsort(costs, (size_t)batches, sizeof(double), ascending);
  for (long i = 0; i < kept; i++) sum += costs[i];
  printf("%f\n", sum / (double)kept);
  return 0;
}
