// Calls `show` with a struct whose text is shorter than its array, and is followed by other bytes.
#include <string.h>

struct named {
  char text[8];
  int number;
};

__attribute__((noinline)) void show(struct named *p) { __asm__ volatile("" : : "r"(p) : "memory"); }

int main(void) {
  struct named a;
  memset(&a, 'x', sizeof(a));
  strcpy(a.text, "ab");
  show(&a);
  return 0;
}
