// mapped FILE OFFSET SEEN: maps FILE as code from the page of OFFSET on, as Android's loader maps a library in a package,
// and calls the function there with 0 to 4; prints what it returns in all, and stays until
// the file SEEN exists, so that its tracer can read what is mapped.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int fd = open(argv[1], O_RDONLY);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return 1;
  const unsigned long offset = strtoul(argv[2], NULL, 0);
  const unsigned long page = offset & ~4095ul;
  char* code = mmap(NULL, (unsigned long)status.st_size - page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (long)page);
  if (code == MAP_FAILED) return 1;
  int (*function)(int);
  code += offset - page;
  memcpy(&function, &code, sizeof(function));  // ISO C has no conversion for it
  int sum = 0;
  for (int i = 0; i < 5; ++i) sum += function(i);
  printf("sum %d\n", sum);
  fflush(stdout);
  while (access(argv[3], F_OK) != 0) usleep(1000);
}
