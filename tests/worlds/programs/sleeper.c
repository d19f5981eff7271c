// Says that it is there. At a line of input it sleeps forty times for 10 ms, and so do its children, of which the
// argument is the number; then it says how many microseconds all of them have slept. Ends at the end of its input.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static long sleep_often(void) {
  long slept_us = 0;
  for (int i = 0; i < 40; ++i) {
    const long from = now_us();
    usleep(10000);
    slept_us += now_us() - from;
  }
  return slept_us;
}

int main(int argc, char** argv) {
  const int children = argc > 1 ? atoi(argv[1]) : 0;
  int go[2], done[2];
  if (pipe(go) != 0 || pipe(done) != 0) return 1;
  for (int i = 0; i < children; ++i) {
    if (fork() != 0) continue;
    close(go[1]);
    char byte;
    while (read(go[0], &byte, 1) == 1) {
      const long slept_us = sleep_often();
      if (write(done[1], &slept_us, sizeof(slept_us)) < 0) return 1;
    }
    return 0;
  }
  puts("there");
  fflush(stdout);
  while (getchar() != EOF) {
    for (int i = 0; i < children; ++i)
      if (write(go[1], "", 1) < 0) return 1;
    long sum_us = sleep_often();
    for (int i = 0; i < children; ++i) {
      long slept_us = 0;
      if (read(done[0], &slept_us, sizeof(slept_us)) < 0) return 1;
      sum_us += slept_us;
    }
    printf("%ld\n", sum_us);
    fflush(stdout);
  }
  close(go[1]);
  while (wait(NULL) > 0) continue;
  return 0;
}
