#include "base/fatal.h"

#include <cstdio>
#include <cstdlib>

namespace espy {

void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "espy: internal error in %s:%d: %s\n", file, line, what);
  std::fprintf(stderr, "espy: this is a bug in espy, not in your script; please report it with the script\n");
  std::abort();
}

}  // namespace espy
