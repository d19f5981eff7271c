// Calls part() thirty times. Its loop is its second half, which GCC makes a function of its own.
__attribute__((noipa)) static void outside(int x) { __asm__ volatile("" ::"r"(x)); }

static int part(int x) {
  if (__builtin_expect(x % 2, 1)) return x;
  for (int i = 0; i < 20; i++) {
    outside(i);
    outside(i * 2);
    outside(i * 3);
    outside(i + x);
  }
  return x * 3;
}

__attribute__((noinline)) static int one(int x) { return part(x) + 1; }
__attribute__((noinline)) static int two(int x) { return part(x) * 2; }
__attribute__((noinline)) static int three(int x) { return part(x) * 7; }

int main(void) {
  volatile int sum = 0;
  for (int i = 0; i < 10; i++) sum = sum + one(i) + two(i) + three(i);
  return 0;
}
