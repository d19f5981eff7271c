// Calls of which the compiler makes copies in place, several deep, in a loop, in a callback and in a signal handler; the
// calls of `leaf` are real ones.
#include <signal.h>
#include <stdlib.h>

#ifdef __clang__
#define noipa noinline
#endif

volatile int sum;

__attribute__((noipa)) int leaf(int value) { return sum += value; }

static inline __attribute__((always_inline)) int innermost(int value) {
  const int got = leaf(value);
  return got + sum;
}

static inline __attribute__((always_inline)) int middle(int value) {
  int out = 0;
  for (int i = 0; i < value; i++) {
    out += innermost(i);
  }
  return out;
}

__attribute__((noipa)) static int outer(int value) {
  const int first = middle(value);
  const int second = innermost(first);
  return first + second + sum;
}

static int compare(const void* a, const void* b) {
  return innermost(*(const int*)a - *(const int*)b) - sum;
}

static void handle(int signal) { sum -= innermost(signal); }

__attribute__((noipa)) static int interrupted(int signal) {
  raise(signal);
  return sum + signal;
}

// The call is the last instruction: what comes behind is another function's.
__attribute__((noipa, noreturn)) static void finish(void) {
  sum += innermost(7);
  exit(0);
}

int main(void) {
  int numbers[] = {3, 1, 2};
  signal(SIGUSR1, handle);
  sum += outer(2);
  sum += middle(1);
  qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
  sum += interrupted(SIGUSR1);
  finish();
}
