// Classes that are passed and returned by value in registers, and those that are passed by address since a member or a
// base, a constructor or a destructor is not trivial.
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace passed {

struct Counted {
  int* count;
  explicit Counted(int* of) : count(of) {}
  Counted(const Counted& other) : count(other.count) { ++*count; }
  ~Counted() { --*count; }
};
struct Member {
  Counted counted;
  int tag;
};
struct Nested {
  Member member;
  int tag;
};
struct Derived : Counted {
  explicit Derived(int* of) : Counted(of) {}
  int tag = 9;
};
struct Array {
  Counted counted[1];
  int tag;
};
struct Named {
  std::string name;
  int tag;
};
struct List {
  std::vector<int> items;
  int tag;
};
struct Moved {
  int tag;
  explicit Moved(int value) : tag(value) {}
  Moved(Moved&& other) : tag(other.tag) { other.tag = 0; }
};
struct Kept {  // neither copied nor moved
  int tag;
  explicit Kept(int value) : tag(value) {}
  Kept(const Kept&) = delete;
};
struct Late {  // user-provided, though defaulted
  int tag;
  explicit Late(int value) : tag(value) {}
  Late(const Late& other);
};
Late::Late(const Late&) = default;
struct Virtual {
  int tag = 3;
  virtual int get() { return tag; }
};
struct Defaulted {
  long first;
  int tag;
  Defaulted(long one, int two) : first(one), tag(two) {}
  Defaulted(const Defaulted&) = default;
  Defaulted& operator=(const Defaulted& other) {
    first = other.first;
    return *this;
  }
  ~Defaulted() = default;
};
struct Converted {  // from others of its template: no copy
  int tag;
  explicit Converted(int value) : tag(value) {}
  template <class Other>
  explicit Converted(const Other& other) : tag(other.tag) {}
};

template <class Value>
__attribute__((noinline)) int take(int before, Value value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return before + value.tag + after;
}
__attribute__((noinline)) int shared(std::shared_ptr<int> value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return *value + after;
}
__attribute__((noinline)) int weak(std::weak_ptr<int> value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return after;
}
__attribute__((noinline)) int pair(std::pair<std::string, int> value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return value.second + after;
}
__attribute__((noinline)) int text(std::string value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return static_cast<int>(value.size()) + after;
}
__attribute__((noinline)) int numbers(std::pair<int, int> value, int after) {
  asm volatile("" ::"r"(&value) : "memory");
  return value.second + after;
}
__attribute__((noinline)) Member give(int* count, int tag) {
  asm volatile("" ::: "memory");
  return {Counted(count), tag};
}
__attribute__((noinline)) Named give_named(int tag) {
  asm volatile("" ::: "memory");
  return {"given", tag};
}
__attribute__((noinline)) std::shared_ptr<int> give_shared(int value) {
  asm volatile("" ::: "memory");
  return std::make_shared<int>(value);
}

}  // namespace passed

int main() {
  using namespace passed;
  int count = 100;
  const auto five = std::make_shared<int>(5);
  int sum = take(1, Member{Counted(&count), 11}, 101) + take(2, Nested{{Counted(&count), 0}, 12}, 102) +
            take(3, Derived(&count), 103) + take(4, Array{{Counted(&count)}, 14}, 104) +
            take(5, Named{"name", 15}, 105) + take(6, List{{1, 2}, 16}, 106) + take(7, Moved(17), 107) +
            take(8, Kept(18), 108) + take(9, Late(19), 109) + take(10, Virtual(), 110) +
            take(11, Defaulted(1, 21), 111) + take(12, Converted(22), 112);
  sum +=
      shared(five, 201) + weak(five, 202) + pair({"first", 77}, 203) + numbers({88, 89}, 204) + text("by value", 205);
  sum += give(&count, 301).tag + give_named(302).tag + *give_shared(303);
  return sum == 0;
}
