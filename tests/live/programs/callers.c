// Arguments that a function has lost when it has used their registers for something else, and callers of all kinds who
// still know them, or do not. What they were is also in `first` and `second`, which stay in memory.
#include <stdlib.h>

#ifdef __clang__
#define noipa noinline
#endif

volatile long sink;
volatile int changing = 3;

__attribute__((noipa)) int opaque(long value) {
  sink += value;
  changing = (int)value;
  return (int)value;
}

#define KEPT_APART __attribute__((noinline, noclone))

KEPT_APART static int lose(int a, long b) {
  volatile int first = a;
  volatile long second = b;
  int got = opaque(a + b);
  got += opaque(got);
  got += opaque(sink);  // here nothing is left of a and b
  sink += got;
  return got + first + (int)second;
}

// Keeps b for a call, and passes on what it was given itself.
KEPT_APART static int pass(int a, long b) {
  sink += a;
  const int got = lose(a, b * 2);
  sink += opaque(got);
  return got + lose(77, b);
}

KEPT_APART static int recurse(int depth, int value) {
  const int got = lose(depth, value);
  if (depth > 0) sink += recurse(depth - 1, value + got) + 1;
  return got + lose(-depth, value + 5);
}

// Returns to somebody else's call.
KEPT_APART static int replace(int a, long b) {
  sink += b;
  return lose(a + 1, b - 1);
}

KEPT_APART static int odd(int n, long sum);
KEPT_APART static int even(int n, long sum) {
  opaque(n);
  sink += opaque(sum);  // by a tail call of `odd`, or by the first call: nobody can tell
  if (changing == 12345) return 0;
  return odd((int)(sink & 7), sum + 1);
}
KEPT_APART static int odd(int n, long sum) {
  opaque(n);
  if (sum > 6) return 1;
  return even((int)(sink & 3), sum + 2);
}

static int compare(const void* a, const void* b) {
  const int left = *(const int*)a, right = *(const int*)b;
  return lose(left, right) > 0 ? -1 : 1;
}

int main(int argc, char** argv) {
  int numbers[] = {5, 2, 4};
  int (*volatile anywhere)(int, long) = lose;
  sink += lose(argc * 1000, 1234567890123);
  for (int i = 0; i < 3; i++) sink += lose(i, (long)argv[0]) + i;
  sink += lose(changing, (long)numbers);
  sink += pass(argc + 41, 99);
  sink += recurse(3, argc);
  sink += replace(8, 9) + 1;
  sink += even(4, 1) + 1;
  qsort(numbers, 3, sizeof(numbers[0]), compare);
  sink += anywhere(66, 67) + 1;
  return 0;
}
