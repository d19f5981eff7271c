// preempted THREADS CALLS: threads on one CPU that only compute call tick(). Where the kernel preempts programs, a thread
// enters a long probe while others are within it.
//
// The truth: thread I calls tick() CALLS times with N = 1000 + I, by the function by_I() for I below 4, else by_3().
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { kMaxThreads = 64 };
static int calls;

__attribute__((noinline)) void tick(long n, long n_by_7, long n_squared, long next, long before, long odd) {
  asm volatile("" : : "r"(n), "r"(n_by_7), "r"(n_squared), "r"(next), "r"(before), "r"(odd) : "memory");
}

#define CALLER(number)                                        \
  __attribute__((noinline)) static void by_##number(long n) { \
    tick(n, n * 7, n * n, n + 1, n - 1, n ^ 5);               \
    asm volatile("" : : : "memory");                          \
  }
CALLER(0)
CALLER(1)
CALLER(2)
CALLER(3)

static void* call(void* argument) {
  static void (*const callers[])(long) = {by_0, by_1, by_2, by_3};
  const long thread = (long)argument;
  for (int i = 0; i < calls; i++) callers[thread < 4 ? thread : 3](1000 + thread);
  return 0;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 4;
  calls = argc > 2 ? atoi(argv[2]) : 1;
  if (threads < 1 || threads > kMaxThreads) return 2;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof(one), &one);
  pthread_t ids[kMaxThreads];
  for (long i = 0; i < threads; i++) pthread_create(&ids[i], 0, call, (void*)i);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
  return 0;
}
