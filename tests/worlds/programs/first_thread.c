// first_thread CASE: waits for a line of stdin, calls `tick` 100 times, prints how often it was called, and ends.
//   before  the first thread has ended before
//   during  the first thread ends after 50 calls
//   exec    another thread executes the program anew after 50 calls
//   first   the same by the first thread
//   exit    the first thread ends the process while others are there
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* which;
static char* self;
static int is_over;

__attribute__((noinline)) void tick(int n) { __asm__ volatile("" ::"r"(n) : "memory"); }

static void call(int from, int to) {
  for (int i = from; i < to; ++i) tick(i);
}

static void say(void) {
  printf("called\n");
  fflush(stdout);
}

static void wait_for_line(void) {
  char line[16];
  if (fgets(line, sizeof(line), stdin) == NULL) exit(1);
}

static void* other(void* first) {
  if (strcmp(which, "exit") == 0)
    for (;;) pause();
  if (strcmp(which, "during") == 0) pthread_join(*(pthread_t*)first, NULL);
  if (strcmp(which, "before") == 0) {
    pthread_join(*(pthread_t*)first, NULL);
    say();
    wait_for_line();
    call(0, 50);
  }
  if (strcmp(which, "exec") == 0) execl(self, self, "again", NULL);
  call(50, 100);
  say();
  wait_for_line();
  exit(0);
}

int main(int argc, char** argv) {
  static pthread_t first;
  pthread_t thread;
  self = argv[0];
  which = argc > 1 ? argv[1] : "";
  first = pthread_self();
  if (strcmp(which, "again") == 0) {
    call(50, 100);
    say();
    wait_for_line();
    return 0;
  }
  if (strcmp(which, "before") != 0) {
    say();
    wait_for_line();
    call(0, 50);
  }
  if (strcmp(which, "first") == 0) execl(self, self, "again", NULL);
  pthread_create(&thread, NULL, other, &first);
  if (strcmp(which, "exit") == 0) {
    call(50, 100);
    say();
    wait_for_line();
    return is_over;
  }
  if (strcmp(which, "exec") == 0) pause();
  pthread_exit(NULL);
}
