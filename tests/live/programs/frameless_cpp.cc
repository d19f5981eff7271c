// The same in C++: virtual functions, a callback through templates of the library, a destructor while an exception
// unwinds the stack.
#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

int sum;

extern "C" __attribute__((noinline, noclone)) int leaf(int value) {
  __asm__ volatile("" ::: "memory");
  return sum += value;
}

namespace {

struct Shape {
  virtual ~Shape() = default;
  virtual int area(int scale) const = 0;
};

struct Square final : Shape {
  __attribute__((noinline)) int area(int scale) const override { return leaf(scale) * scale; }
};

struct Pair final : Shape {
  Square first, second;
  __attribute__((noinline)) int area(int scale) const override { return first.area(scale) + second.area(scale + 1); }
};

struct Guard {
  __attribute__((noinline)) ~Guard() { sum += leaf(1) - sum; }
};

__attribute__((noinline)) int fail(const std::string& what) {
  const Guard guard;
  if (sum > -1000000) throw std::runtime_error(what);
  return 0;
}

}  // namespace

int main() {
  std::vector<int> numbers = {3, 1, 2};
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return leaf(a) - a < leaf(b) - b + a - b; });
  const std::function<int(int)> twice = [](int value) { return leaf(value) + 1; };
  sum += twice(2);
  const Pair pair;
  const Shape* volatile shape = &pair;
  sum += shape->area(3);
  std::map<int, std::function<int()>> calls;
  for (int i = 0; i < 3; ++i) calls[i] = [i, &twice] { return twice(i) + 1; };
  for (const auto& [key, call] : calls) sum += call() + key;
  try {
    sum += fail("as it should");
  } catch (const std::exception&) {
    sum += leaf(4);
  }
}
