// family COUNT: waits for a line on standard input, then starts COUNT processes, each of which reads one byte of
// /dev/zero; they stay until the end of standard input.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 0;
  int zero = open("/dev/zero", O_RDONLY);
  int ready[2], stay[2];
  char byte;

  if (zero < 0 || pipe(ready) || pipe(stay) || read(STDIN_FILENO, &byte, 1) != 1) return 1;
  for (long i = 0; i < count; i++) {
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      close(stay[1]);
      if (read(zero, &byte, 1) != 1 || write(ready[1], "x", 1) != 1) _exit(1);
      _exit(read(stay[0], &byte, 1) != 0);
    }
  }
  for (long i = 0; i < count; i++)
    if (read(ready[0], &byte, 1) != 1) return 1;
  puts("done");
  fflush(stdout);
  while (read(STDIN_FILENO, &byte, 1) == 1) continue;
  close(stay[1]);
  while (wait(NULL) > 0) continue;
  return 0;
}
