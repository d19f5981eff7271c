// Executes the program of the first argument from a memory file.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

extern char** environ;

int main(int argc, char** argv) {
  const int memory = memfd_create("payload", MFD_CLOEXEC), file = open(argv[argc - 1], O_RDONLY);
  while (sendfile(memory, file, NULL, 1 << 20) > 0) continue;
  char* arguments[] = {"payload", NULL};
  fexecve(memory, arguments, environ);
  perror("fexecve");
  return 1;
}
