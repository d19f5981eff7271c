// Ways to a function through code without frame pointers: recursion, frames of a size known only at run time, a shared
// library, a callback of the C library, a signal handler on the same stack and on its own, another thread.
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

int through(int (*function)(int), int value);  // in another library

volatile int sum;

__attribute__((noinline, noclone)) int leaf(int value) {
  __asm__ volatile("" ::: "memory");
  return sum += value;
}

__attribute__((noinline, noclone)) static int recurse(int depth) {
  const int below = depth == 0 ? leaf(depth) : recurse(depth - 1);
  return below + sum;
}

__attribute__((noinline, noclone)) static int vary(int size) {
  volatile char* room = alloca((size_t)size);
  room[0] = (char)size;
  return leaf(size) + room[0];
}

__attribute__((noinline, noclone)) static int compare(const void* a, const void* b) {
  return leaf(*(const int*)a - *(const int*)b) - sum;
}

__attribute__((noinline, noclone)) static void handle(int signal) { sum -= leaf(signal); }

__attribute__((noinline, noclone)) static int interrupted(int signal) {
  raise(signal);
  return sum + signal;
}

__attribute__((noinline, noclone)) static void* run(void* value) {
  sum -= recurse(2);
  return value;
}

int main(void) {
  int numbers[] = {5, 2, 4, 1, 3};
  static char other_stack[65536];
  const stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
  struct sigaction on_other_stack = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  pthread_t thread;
  signal(SIGUSR1, handle);
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR2, &on_other_stack, NULL);
  sum += leaf(0);
  sum += recurse(9);
  sum += vary(100) + vary(5000);
  sum += through(vary, 64);
  qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
  sum += interrupted(SIGUSR1) + interrupted(SIGUSR2);
  if (pthread_create(&thread, NULL, run, NULL) == 0) pthread_join(thread, NULL);
  return 0;
}
