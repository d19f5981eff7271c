// Overloads, a method, a template and a function without a namespace, for tests of how functions are named.
#include <cstddef>

namespace shop {
__attribute__((noinline)) int twice(int x) {
  asm volatile("");
  return x * 2;
}
__attribute__((noinline)) int twice(long x, int y) {
  asm volatile("");
  return static_cast<int>(x) * 2 + y;
}
__attribute__((noinline)) int twice_all(size_t count) {
  asm volatile("");
  return static_cast<int>(count) * 2;
}
struct Basket {
  __attribute__((noinline)) int add(int count) {
    asm volatile("");
    return total += count;
  }
  int total = 0;
};
template <class T>
__attribute__((noinline)) T next(T value) {
  asm volatile("");
  return value + 1;
}
}  // namespace shop

__attribute__((noinline)) int alone(int x) {
  asm volatile("");
  return x + 1;
}

int main() {
  shop::Basket basket;
  const int sum = shop::twice(1) + shop::twice(2L, 3) + shop::twice_all(4) + basket.add(5) + shop::next(6) + alone(7);
  return sum == 0 ? 1 : 0;
}
