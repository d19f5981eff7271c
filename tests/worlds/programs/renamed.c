// renamed SECONDS: takes names one after another, of which many outputs could show two alike, and calls tick() once
// with the first, twice with the second, and so on. Then sleeps.
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char* const names[] = {
    "y\xff", "y\\xff",       "y\\x5cxff",       "z\x01",    "z\\x01", "a;b",  "a:b", "a\\x3bb", "a b", "ab",
    "a(b)",  "\xe2\x80\x8f", "\\xe2\\x80\\x8f", "\xc3\xa4", "\xe4",   "n\nm", "n m", "\\",      "\"",  "q\\\"",
    "a,b",   "a\\,b"};

__attribute__((noinline)) void tick(void) { __asm__ volatile("" ::: "memory"); }

int main(int argc, char** argv) {
  for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    prctl(PR_SET_NAME, names[i]);
    for (unsigned k = 0; k <= i; ++k) tick();
  }
  prctl(PR_SET_NAME, "end");
  sleep((unsigned)atoi(argv[argc - 1]));
}
