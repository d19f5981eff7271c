// Numbers whose debug information has a top bit that is no sign: enumerators and constants of the compiler.
enum signal { LOW = 1, HIGH = 200, HIGHER = 40000 };
enum flags { NONE = 0, ALL = 0xffffffffu };
enum offset { BACK = -200, AHEAD = 200 };

struct state {
  enum signal signal;
  enum signal narrow : 9;
  enum signal wider : 17;
  enum offset offset : 10;
};

__attribute__((noinline)) enum signal show(const struct state* state, enum signal signal, enum flags flags,
                                           enum offset offset) {
  __asm__ volatile("" ::: "memory");
  return state->signal == signal && flags == ALL && offset == BACK ? HIGHER : LOW;
}

__attribute__((noinline)) void use(int value) { __asm__ volatile("" ::"r"(value) : "memory"); }

__attribute__((noinline)) int fold(int value) {
  int two_hundred = 200;
  signed char below = -56;
  unsigned short most = 65535;
  long large = 0x90000000;
  unsigned high = 3000000000;
  use(value);
  return value + 1;
}

int main(void) {
  struct state state = {HIGH, HIGH, HIGHER, BACK};
  return show(&state, HIGH, ALL, BACK) == HIGHER ? fold(0) - 1 : 1;
}
