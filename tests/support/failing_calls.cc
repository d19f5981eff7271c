// Calls of the C library that fail on request, linked into `starved_espy` by the linker's --wrap. In the environment:
//   FAIL=malloc or FAIL=mmap   which calls
//   FAIL_AT=N                  the first one that fails, from 1 on; those before main() do not count
//   FAIL_COUNT=N               how many of them fail (all that follow)
// Allocations are those of C++, of the C library and of libelf and libdw alike.
#include <sys/mman.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

enum class Kind { kNone, kMalloc, kMmap };

unsigned long number(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

Kind chosen_kind() {
  const char* name = std::getenv("FAIL");
  if (name == nullptr) return Kind::kNone;
  return std::strcmp(name, "malloc") == 0 ? Kind::kMalloc : Kind::kMmap;
}

bool is_in_main = false;

bool fails(Kind kind) {
  if (!is_in_main) return false;
  static bool is_ready = false;
  static Kind chosen = Kind::kNone;
  static unsigned long first = 0, end = 0, calls = 0;
  if (!is_ready) {
    is_ready = true;
    chosen = chosen_kind();
    first = number("FAIL_AT", 1);
    const unsigned long count = number("FAIL_COUNT", ULONG_MAX / 2);
    end = first + count;
  }
  if (kind != chosen) return false;
  ++calls;
  if (calls < first || calls >= end) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
int __real_main(int argc, char** argv);
int __wrap_main(int argc, char** argv) {
  is_in_main = true;
  return __real_main(argc, argv);
}

void* __real_malloc(size_t size);
void* __real_calloc(size_t count, size_t size);
void* __real_realloc(void* memory, size_t size);
void* __real_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset);

void* __wrap_malloc(size_t size) { return fails(Kind::kMalloc) ? nullptr : __real_malloc(size); }
void* __wrap_calloc(size_t count, size_t size) { return fails(Kind::kMalloc) ? nullptr : __real_calloc(count, size); }
void* __wrap_realloc(void* memory, size_t size) {
  return fails(Kind::kMalloc) ? nullptr : __real_realloc(memory, size);
}
void* __wrap_mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  return fails(Kind::kMmap) ? MAP_FAILED : __real_mmap(address, size, protection, flags, fd, offset);
}
}
