// Calls f() 20 times with a struct of 150 KB.
struct large {
  char text[150000];
  int last;
};

static struct large value = {.text = "first", .last = 7};

__attribute__((noinline, used)) int f(const struct large* p) {
  __asm__ volatile("" : : "r"(p) : "memory");
  return 1;
}

int main(void) {
  for (int i = 0; i < 20; ++i) f(&value);
  return 0;
}
