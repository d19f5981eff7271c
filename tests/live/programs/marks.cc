// marks N: passes the USDT probe espy:mark N times, with a number and a text.
#include <sys/sdt.h>
#include <unistd.h>

#include <cstdlib>

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 1;
  char text[] = "text";
  for (long i = 0; i < count; ++i) {
    DTRACE_PROBE2(espy, mark, i, text);
    ::usleep(100);
  }
}
