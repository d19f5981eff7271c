// Methods, references, bases and strings, for tests of what debug information tells. Built with -O0 and -O2.
#include <cstdio>
#include <string>

namespace shapes {

struct Named {
  explicit Named(const char* text) : name(text) {}
  virtual ~Named() = default;
  std::string name;
};

class Square : public Named {
 public:
  Square(const char* text, int side) : Named(text), side_(side) {}
  __attribute__((noipa)) int area(int scale) const { return side_ * side_ * scale; }
  __attribute__((noipa)) static long sum(const Square& one, const Square& other);

 private:
  int side_;
};

long Square::sum(const Square& one, const Square& other) { return one.side_ + other.side_; }

template <class T>
__attribute__((noipa)) T larger(const T& one, const T& other) {
  return one < other ? other : one;
}

__attribute__((noipa)) std::string greet(const std::string& whom, std::string how, int times) {
  std::string out = how;
  for (int i = 0; i < times; ++i) out += " " + whom;
  return out;
}

__attribute__((noipa)) int area(int side) { return side * side; }
__attribute__((noipa)) long area(long width, bool is_double) { return is_double ? width * 2 : width; }

}  // namespace shapes

int main() {
  const shapes::Square small("small", 3), big("a square with quite a long name", 10);
  const std::string greeting = shapes::greet("world, wherever you are", "hello", 2);
  std::printf("%d %ld %d %s\n", small.area(2), shapes::Square::sum(small, big), shapes::larger(4, 5), greeting.c_str());
  std::printf("%d %ld %ld\n", shapes::area(7), shapes::area(8L, true), shapes::larger(6L, 3L));
  return 0;
}
