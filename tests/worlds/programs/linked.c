// What linkers and compilers make of functions; each part is a program or a file of one. PART names it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <pthread.h>
#include <ucontext.h>
#define CALLED __attribute__((noinline))

#ifdef RENAMED  // a function of the name `same` in each of two files that are compiled as one; 5 + 6 calls
#ifdef OTHER
static CALLED int same(int x) { return x * 9 + rand() + rand(); }
int other_file(int);
int main(void) {
  int sum = other_file(5);
  for (int i = 0; i < 6; i++) sum += same(i);
  return sum == 0;
}
#else
static CALLED int same(int x) { return x * 7 + rand(); }
int other_file(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += same(i);
  return sum;
}
#endif
#endif

#ifdef FOLDED  // `one` and `two` have the same code; 5 and 7 calls. CALLED_ONLY and CALLS make two files of it.
#ifndef SCOPE
#define SCOPE static CALLED
#endif
#ifdef CALLS
int one(int), two(int);
#else
SCOPE int one(int x) {
  for (int i = 0; i < x; i++) {
    if (rand() == 7) puts("a");
    if (rand() == 8) puts("b");
    if (rand() == 9) puts("c");
    if (rand() == 10) puts("d");
  }
  return x * 3 + rand();
}
SCOPE int two(int x) {
  for (int i = 0; i < x; i++) {
    if (rand() == 7) puts("a");
    if (rand() == 8) puts("b");
    if (rand() == 9) puts("c");
    if (rand() == 10) puts("d");
  }
  return x * 3 + rand();
}
#endif
#ifndef CALLED_ONLY
int main(void) {
  int sum = 0;
  for (int i = 0; i < 5; i++) sum += one(i);
  for (int i = 0; i < 7; i++) sum += two(i);
  return sum == 0;
}
#endif
#endif

#ifdef CHANGED  // the loader changes the instruction of where_is(); ends with 7 if it is right
int variable = 42;
int* where_is(void);
__asm__(".text\n.globl where_is\n.type where_is, @function\nwhere_is: movabs $variable, %rax\nret\n.size where_is, .-where_is\n");
int main(void) { return where_is() == &variable ? 7 : 1; }
#endif

#ifdef FLAGS  // ends with 7 if the trap flag is not set in what flags() returns
unsigned long flags(void);
__asm__(".text\n.globl flags\n.type flags, @function\nflags: pushfq\npopq %rax\nret\n.size flags, .-flags\n");
int main(void) { return flags() >> 8 & 1 ? 1 : 7; }
#endif

#ifdef CALLER  // ends with 7 if the loader knows who calls it
int main(void) { return dlsym(RTLD_NEXT, "malloc") != NULL ? 7 : 1; }
#endif

#ifdef COROUTINES  // step() is called ten times and returns nine times; ends with 7 if each return was to its caller
static ucontext_t first, second, start;
static int in_first, in_second;
CALLED int step(ucontext_t* from, ucontext_t* to, int x) {
  swapcontext(from, to);
  return x + 1;
}
static void run_first(void) {
  for (int i = 0; i < 5; i++) in_first += step(&first, &second, 0);
  swapcontext(&first, &start);
}
static void run_second(void) {
  for (int i = 0; i < 50; i++) in_second += step(&second, &first, 0);
}
static void prepare(ucontext_t* context, void (*run)(void)) {
  getcontext(context);
  context->uc_stack.ss_sp = malloc(65536);
  context->uc_stack.ss_size = 65536;
  makecontext(context, run, 0);
}
int main(void) {
  prepare(&first, run_first);
  prepare(&second, run_second);
  swapcontext(&start, &first);
  return in_first == 5 && in_second == 4 ? 7 : 1;
}
#endif

#ifdef OTHER_STACK  // outer() calls inner() in a signal handler on a stack at a higher address, three times; ends with 7
CALLED int inner(int x) {
  __asm__ volatile("");
  return x + 1;
}
static void handler(int number) {
  inner(number);
  __asm__ volatile("");  // a jump to inner() would look like code that the two share
}
CALLED int outer(int x) {
  raise(SIGUSR1);
  return x + 1;
}
static void* run(void* stack) {
  stack_t other = {.ss_sp = stack, .ss_size = 65536};
  sigaltstack(&other, NULL);
  long sum = 0;
  for (int i = 0; i < 3; i++) sum += outer(i);
  return (void*)sum;
}
int main(void) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  char* memory = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, 1 << 20);
  pthread_t thread;
  pthread_create(&thread, &attributes, run, memory + (2 << 20));
  void* sum;
  pthread_join(thread, &sum);
  return (long)sum == 6 ? 7 : 1;
}
#endif
