// Compiled twice, with another name of CALL: two functions have one name.
__attribute__((noinline)) static int same(int x) {
  asm volatile("" : "+r"(x));
  return x + 1;
}
int CALL(int x) { return same(x); }
