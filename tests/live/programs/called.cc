// Functions that are called 10, 20, ... 60 times, and system calls that are made 7, 9 and 11 times.
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTION(n) \
  extern "C" __attribute__((noipa)) int called##n(int x) { return x + n; }
FUNCTION(1)
FUNCTION(2)
FUNCTION(3)
FUNCTION(4)
FUNCTION(5)
FUNCTION(6)

int main() {
  int (*const functions[])(int) = {called1, called2, called3, called4, called5, called6};
  int sum = 0;
  for (int n = 0; n < 6; ++n)
    for (int i = 0; i < (n + 1) * 10; ++i) sum += functions[n](i);
  for (int i = 0; i < 7; ++i) syscall(SYS_getpgid, 0);
  for (int i = 0; i < 9; ++i) syscall(SYS_getsid, 0);
  for (int i = 0; i < 11; ++i) syscall(SYS_getpriority, 0, 0);
  return sum == 0;
}
