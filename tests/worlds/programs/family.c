// A process with children, and children of these, that are there when it says so. At a line of input each of the six
// calls tick() a hundred times.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void tick(int number) { __asm__ volatile("" : : "r"(number) : "memory"); }

static void tick_often(void) {
  for (int i = 0; i < 100; ++i) tick(i);
}

static int go[2], done[2];

static void serve(void) {
  close(go[1]);
  char byte;
  while (read(go[0], &byte, 1) == 1) {
    tick_often();
    if (write(done[1], "", 1) < 0) break;
  }
}

int main(void) {
  char byte;
  if (pipe(go) != 0 || pipe(done) != 0) return 1;
  for (int i = 0; i < 3; ++i) {
    if (fork() != 0) continue;
    if (i < 2 && fork() == 0 && i == 1) {  // a child of the second child, and one whose parent goes on
      serve();
      return 0;
    }
    serve();
    while (wait(NULL) > 0) continue;
    return 0;
  }
  puts("there");
  fflush(stdout);
  while (getchar() != EOF) {
    tick_often();
    for (int i = 0; i < 5; ++i)
      if (write(go[1], "", 1) < 0) return 1;
    for (int i = 0; i < 5; ++i)
      if (read(done[0], &byte, 1) < 0) return 1;
    puts("");
    fflush(stdout);
  }
  close(go[1]);
  while (wait(NULL) > 0) continue;
  return 0;
}
