// distant: calls functions with the addresses of what it has not touched yet. It is in a file in memory, and no page of
// it is mapped before somebody reads it: a text within a page, one that goes on in the next, a struct, and nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

struct Letter {
  int number;
  char text[28];
};

#define VISIBLE extern "C" __attribute__((noinline, used))

VISIBLE void look(const char* text) { asm volatile("" : : "r"(text) : "memory"); }
VISIBLE void keep(const char* text) { asm volatile("" : : "r"(text) : "memory"); }
VISIBLE void look_at(const Letter* letter) { asm volatile("" : : "r"(letter) : "memory"); }
VISIBLE void copy(const Letter* letter) { asm volatile("" : : "r"(letter) : "memory"); }
VISIBLE void compare(const Letter* letter) { asm volatile("" : : "r"(letter) : "memory"); }

namespace {

constexpr size_t kPage = 4096;

// Each page is a mapping of its own, as the kernel maps those around, too, in one.
char* map_pages(int file) {
  auto* start = static_cast<char*>(::mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ::mmap(start, kPage, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0);
  ::mmap(start + kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, kPage);
  return start;
}

}  // namespace

int main() {
  const Letter letter = {42, "dear reader"};
  const int file = ::memfd_create("distant", 0);
  ::ftruncate(file, 2 * kPage);
  ::pwrite(file, "far away", 9, 100);
  ::pwrite(file, &letter, sizeof(letter), 200);
  ::pwrite(file, "across two pages", 17, kPage - 7);
  const auto far = [&] { return map_pages(file) + 100; };
  const auto across = [&] { return map_pages(file) + kPage - 7; };
  const auto letter_there = [&] { return reinterpret_cast<Letter*>(map_pages(file) + 200); };
  look(far());
  look(across());
  look(reinterpret_cast<char*>(8));
  keep(far());
  keep(across());
  look_at(letter_there());
  copy(letter_there());
  compare(letter_there());
}
