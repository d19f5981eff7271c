// A function whose name its compiler mangles, for tests of how names are shown.
#include <unistd.h>

namespace shop {
struct Basket {
  __attribute__((noinline)) int add(int count, const char* what);
  int total = 0;
};

int Basket::add(int count, const char* what) { return total += count + (what != nullptr ? what[0] : 0); }
}  // namespace shop

int main() {
  shop::Basket basket;
  for (;;) {
    basket.add(1, "apple");
    ::usleep(1000);
  }
}
