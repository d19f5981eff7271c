// Starts processes all the time, each of which starts one and waits for it. That one lives for a fifth of a second, then
// calls last() with the time in microseconds, and writes it to the file of the argument. Ends at the end of the input.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void last(long time_us) { __asm__ volatile("" : : "r"(time_us) : "memory"); }

int main(int argc, char** argv) {
  const int file = open(argv[argc - 1], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  puts("there");
  fflush(stdout);
  signal(SIGCHLD, SIG_IGN);
  struct pollfd input = {0, POLLIN, 0};
  while (poll(&input, 1, 5) == 0) {
    if (fork() == 0) {
      signal(SIGCHLD, SIG_DFL);
      if (fork() != 0) _exit(wait(NULL) < 0);
      usleep(200000);
      struct timespec now;
      clock_gettime(CLOCK_MONOTONIC, &now);
      const long time_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
      last(time_us);
      char text[32];
      const int bytes = snprintf(text, sizeof(text), "%ld\n", time_us);
      if (write(file, text, (size_t)bytes) < 0) _exit(1);
      _exit(0);
    }
  }
  usleep(400000);
  return 0;
}
