// Calls f() 12 times with a struct of 150 KB.
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
  // Not all programs wait for a page that is not there.
  for (unsigned i = 4096; i < sizeof(value.text); i += 4096) *(volatile char*)(value.text + i) = 0;
  for (int i = 0; i < 12; ++i) f(&value);
  return 0;
}
