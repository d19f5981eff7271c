// Functions that probes at their ends do not suit: they save their return address, or begin with a loop. `entries saves`
// ends with 7 if each jump back worked; `entries loops` calls spin() ten times and returns 10.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

__attribute__((noipa)) void spin(volatile long* left) {
  while (--*left > 0);
}

static jmp_buf place;
static ucontext_t outer, inner;
static int turns;

static void turn(void) {
  for (;;) {
    turns++;
    swapcontext(&inner, &outer);
  }
}

static int saves(void) {
  volatile int jumps = 0;
  if (setjmp(place) < 4) {
    jumps++;
    longjmp(place, jumps);
  }
  getcontext(&inner);
  inner.uc_stack.ss_sp = malloc(65536);
  inner.uc_stack.ss_size = 65536;
  makecontext(&inner, turn, 0);
  for (int i = 0; i < 3; i++) swapcontext(&outer, &inner);
  return jumps + turns;
}

static int loops(void) {
  volatile long left;
  int calls = 0;
  for (; calls < 10; calls++) {
    left = 20;
    spin(&left);
  }
  return calls;
}

int main(int count, char** arguments) { return count > 1 && strcmp(arguments[1], "saves") == 0 ? saves() : loops(); }
