// Functions that are nowhere but in others.
volatile int sink;

__attribute__((noipa)) static int opaque(int value) { return sink += value; }

static inline __attribute__((always_inline)) void count(void) {
  static int counter = 10;
  sink = 5;
  counter++;
  sink = counter;
}

static inline __attribute__((always_inline)) int keep(int value, int is_used) {
  int got = opaque(value);
  opaque(7);
  sink += 5;  // where it is not used any more, `got` is gone
  opaque(8);
  return is_used ? got : value;
}

__attribute__((noipa)) static int used(int value) { return keep(value, 1); }
__attribute__((noipa)) static int unused(int value) { return keep(value, 0); }

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
  sink = 100;
  used(3);
  unused(4);
  return 0;
}
