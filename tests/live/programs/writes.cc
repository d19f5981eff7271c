// writes N: writes N times, at a fixed address, a millisecond apart.
#include <unistd.h>

#include <cstdlib>

extern "C" {
volatile long watched = 0;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 1;
  for (long i = 0; i < count; ++i) {
    watched = i;
    ::usleep(1000);
  }
}
