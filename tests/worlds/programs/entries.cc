// Functions of C++ whose calls are not those of one symbol: a destructor that calls another one, a copy in a thunk, a
// `ret` that is a jump, one that two functions share. Each is called as often as its name says.
#include <cstdio>

struct First {
  virtual long first(long x) { return x + 1; }
  virtual ~First() {}
  long more = 0;
};
struct Second {
  virtual long nine_times(long x) { return x; }
  virtual ~Second() {}
  long more = 0;
};
volatile long sum;
struct Both : First, Second {
  long nine_times(long x) override {
    sum = sum + x;
    return x * x + 3;
  }
  __attribute__((noinline)) ~Both() override { sum = sum + 1; }
};

struct Key {
  char small;
  int large;
};
__attribute__((noipa)) void keyed(const Key* key) { sum = sum + key->large; }

long plus_one(long x) { return x + 1; }
long (*volatile called)(long) = plus_one;
__attribute__((noinline)) long ten_times(long n) {
  long out = 0;
  for (long i = 0; i < n; i++) out += called(i);
  return out;
}

// The second one ends with the `ret` of the first one.
extern "C" long thirty_times(long x);
extern "C" long jumps_into_it(long x);
asm(".text\n.globl thirty_times\n.type thirty_times, @function\nthirty_times:\n"
    ".cfi_startproc\nlea 1(%rdi), %rax\n.Lshared: ret\n.cfi_endproc\n.size thirty_times, .-thirty_times\n"
    ".globl jumps_into_it\n.type jumps_into_it, @function\njumps_into_it:\n"
    ".cfi_startproc\nlea 100(%rdi), %rax\njmp .Lshared\n.cfi_endproc\n.size jumps_into_it, .-jumps_into_it\n");

__attribute__((noipa)) Second* second_of(Both* both) { return both; }

int main() {
  Both both;
  for (int i = 0; i < 9; i++) sum = sum + second_of(&both)->nine_times(i);
  for (int i = 0; i < 5; i++) delete second_of(new Both);
  for (int i = 0; i < 10; i++) sum = sum + ten_times(10);
  for (int i = 0; i < 30; i++) sum = sum + thirty_times(i);
  for (int i = 0; i < 20; i++) sum = sum + jumps_into_it(i);
  for (int i = 0; i < 100; i++) {
    Key key;
    __builtin_memset(&key, i, sizeof key);
    key.small = i % 2;
    key.large = i % 5;
    keyed(&key);
  }
  return 0;
}
