// calls N: calls work(0, "name") to work(N - 1, "name").
#include <unistd.h>

#include <cstdlib>

extern "C" __attribute__((noinline, used)) long work(long number, const char* name) {
  ::usleep(100 + (name[0] == 0 ? 1 : 0));
  return number * 10;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 1;
  char name[] = "name";  // on the stack, in memory for sure
  for (long i = 0; i < count; ++i) work(i, name);
}
