// named NAME: takes this name, and calls getppid(2).
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1) prctl(PR_SET_NAME, argv[1]);
  return syscall(SYS_getppid) < 0;
}
