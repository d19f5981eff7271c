// branches N: calls leaf() 2^N times, each time through other functions: with 2^N stacks.
#include <cstdlib>

#define VISIBLE extern "C" __attribute__((noinline, used))

VISIBLE int leaf(int n) {
  asm volatile("" : : "r"(n) : "memory");
  return 1;
}
VISIBLE int left(int n);
VISIBLE int right(int n) { return n == 0 ? leaf(n) : left(n - 1) + right(n - 1); }
VISIBLE int left(int n) { return n == 0 ? leaf(n) : left(n - 1) + right(n - 1); }

int main(int argc, char** argv) {
  const int depth = argc > 1 ? std::atoi(argv[1]) : 1;
  return left(depth) == 1 << depth ? 0 : 1;
}
