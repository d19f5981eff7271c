// Calls functions with structs by value, one with a number in a vector register, and one without arguments.
#include <string.h>

#define APART __attribute__((noinline, noclone))

struct point {
  int x, y;
};
struct named {
  long number;
  const char* name;
  short rest[2];
};
struct huge {
  char text[20000];
};
struct large {
  char text[600];
  int number;
};

APART int at(struct point p) {
  __asm__ volatile("");
  return p.x;
}
APART long of(struct named n) {
  __asm__ volatile("");
  return n.number;
}
APART int whole(struct large l) {
  __asm__ volatile("");
  return l.number;
}
APART int most(struct huge h) {
  __asm__ volatile("");
  return h.text[0];
}
APART struct point moved(int by) {
  __asm__ volatile("");
  return (struct point){by, -by};
}
APART double half(double x) {
  __asm__ volatile("");
  return x / 2;
}
APART void nothing(void) { __asm__ volatile(""); }

int main(void) {
  struct large l = {.number = 11};
  strcpy(l.text, "large");
  static struct huge h;
  most(h);
  nothing();
  at((struct point){1, -2});
  of((struct named){3, "three", {4, 5}});
  moved(whole(l));
  return half(1.5) > 1;
}
