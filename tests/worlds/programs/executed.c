// Runs code ten times, then executes itself under another name, whose code at the same addresses runs twenty times.
// Build it with -no-pie, and NAME and PAD as code.c has them.
#include "code.c"

#include <unistd.h>

int main(int argc, char** argv) {
  (void)argv;
#ifdef NEXT
  run(10);
  execl(NEXT, NEXT, (char*)0);
  return 1;
#else
  run(20);
  usleep(200000);  // while espy looks at the process
  return argc == 0;
#endif
}
