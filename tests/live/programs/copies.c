// A function that is nowhere but in others.
volatile int sink;

static inline __attribute__((always_inline)) void count(void) {
  static int counter = 10;
  sink = 5;
  counter++;
  sink = counter;
}

__attribute__((noipa)) static void some(void) {
  sink = 1;
  count();
}

__attribute__((noipa)) static void other(void) {
  sink = 2;
  count();
}

int main(void) {
  some();
  other();
  some();
  return 0;
}
