// Calls functions with texts and structs, whose events are recorded.
#include <cstdio>

struct Label {
  int color;
  const char* text;
};

struct Item {
  int id;
  long price;
  char tag[8];
  Label* label;
};

extern "C" __attribute__((noinline)) int buy(const char* name, Item* item, unsigned count) {
  asm volatile("" : : "r"(name), "r"(item), "r"(count) : "memory");
  return item->id + static_cast<int>(count);
}

extern "C" __attribute__((noinline)) const char* title(int number) {
  asm volatile("" : : "r"(number) : "memory");
  return number % 2 != 0 ? "odd" : "even";
}

int main() {
  Label label = {7, "sale"};
  const char* const names[] = {"apple", "pear"};
  std::printf("%s, even or odd\n", names[0]);
  std::printf("%s, even or odd\n", "even");  // programs that take stacks do not wait for pages of texts
  for (int i = 0; i < 6; ++i) {
    Item item = {i, 100L * i, "tag", &label};
    const int sum = buy(names[i % 2], &item, 3);
    std::printf("%s %d\n", title(i), sum);
  }
}
