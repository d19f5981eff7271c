// Arguments, variables and results of all kinds, for tests of what debug information tells. Built with -O0 and -O2.
#include <stdio.h>
#include <string.h>

enum state { kNew, kPaid = 5, kSent };
struct point {
  int x, y;
};
struct order {
  const char* name;
  long price;
  struct point at;
  unsigned flag : 3;
  unsigned kind : 5;
  struct order* next;
  enum state state;
  char tag[8];
};

static long handled;

__attribute__((noipa)) static int bill(struct order* order, int count, const char* name, struct point at, long big,
                                       short low, unsigned char small, int seventh, int eighth) {
  int sum = 0;
  for (int i = 0; i < count; i++) {
    int part = (int)order->price * i + at.x;
    sum += part;
    handled += sum;
  }
  long rest = sum + big;
  if (rest > 5) handled += (long)strlen(name);
  return sum + low + small + seventh + eighth;
}

static inline __attribute__((always_inline)) int twice(int value) {
  int doubled = value * 2;
  handled += doubled;
  return doubled;
}

__attribute__((noipa)) struct point make(int x, int y) {
  struct point out = {twice(x), twice(y)};
  return out;
}

__attribute__((noipa)) const char* label(int paid) { return paid ? "paid" : "open"; }

__attribute__((noipa)) double half(double of, int more) { return of / 2 + more; }

int main(void) {
  struct order second = {"pear", 7, {1, 2}, 3, 17, 0, kSent, "second"};
  struct order first = {"apple", 3, {4, 5}, 2, 9, &second, kPaid, "first"};
  (void)*(const volatile char *)first.name;  // brings the page of all texts into memory, for Linux before 6.6
  const int total = bill(&first, 4, "hello", (struct point){11, 22}, 1234567890123, -7, 200, 31, 32);
  const struct point made = make(total, -2);
  printf("%d %d %s %f %ld\n", made.x, made.y, label(first.flag), half(3.0, 2), handled);
  return 0;
}
