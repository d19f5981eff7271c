// Functions with results of all kinds, and types in namespaces.
namespace shop {
enum class Kind { kFruit = 4, kTool };
enum Size { kSmall = 9, kLarge };
struct Item {
  int price;
  Kind kind;
  const char* name;
};
class Basket {
 public:
  struct Place {
    int row;
  };
  Item items[2];
  int count;
  Place place;
  Size size;
};
}  // namespace shop

namespace depot {
struct Item {
  long weight;
};
struct Only {
  int number;
};
}  // namespace depot

struct Pair {
  int first, second;
};
struct point {  // another one than in orders.c
  long x, y;
};
point origin = {1, 2};
depot::Only only = {3};

extern "C" {
__attribute__((noipa)) void give_nothing(int count) { origin.x += count; }
__attribute__((noipa)) int give_int(int value) { return -value; }
__attribute__((noipa)) unsigned char give_byte(int value) { return static_cast<unsigned char>(value); }
__attribute__((noipa)) Pair give_pair(int value) { return {value, value + 1}; }
__attribute__((noipa)) const char* give_text(const char* text) { return text; }
__attribute__((noipa)) void look(void* basket, void* item, void* pair) {
  asm volatile("" ::"r"(basket), "r"(item), "r"(pair));
}
}

int main() {
  shop::Basket basket = {{{7, shop::Kind::kTool, "saw"}, {8, shop::Kind::kFruit, "fig"}}, 2, {5}, shop::kLarge};
  depot::Item item = {33};
  // Brings the page of all texts into memory, for Linux before 6.6.
  static_cast<void>(*static_cast<const volatile char*>(basket.items[0].name));
  Pair pair = give_pair(10);
  look(&basket, &item, &pair);
  give_nothing(6);
  give_int(5);
  give_byte(251);
  give_text("a \"b\"\n");
  give_text(reinterpret_cast<const char*>(8));
  return 0;
}
