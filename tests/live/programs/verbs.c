// verbs THREADS CALLS HELD [GO DONE [RELEASE]]: calls functions, and prints how often.
//
// Each of THREADS threads calls work(i, "even" or "odd") CALLS times, and fact(5), which calls itself, once. Then HELD
// threads call hold(), which returns when the file RELEASE is there. With GO and DONE, waits until the file GO is
// there, and creates DONE when all is called. Ends when all has returned.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long works, facts, holds;
static long calls;
static const char* release = "";

__attribute__((noinline)) long work(long number, const char* name) {
  atomic_fetch_add(&works, 1);
  usleep(name[0] == 'e' ? 200 : 100);
  return number % 3 - 1;
}

__attribute__((noinline)) long fact(long n) {
  atomic_fetch_add(&facts, 1);
  long below = n > 1 ? fact(n - 1) : 1;
  __asm__ volatile("" : "+r"(below));
  return below * n;
}

__attribute__((noinline)) void hold(void) {
  atomic_fetch_add(&holds, 1);
  while (access(release, F_OK) != 0) usleep(10000);
}

static void* run(void* unused) {
  char even[] = "even", odd[] = "odd";  // on the stack, in memory for sure
  for (long i = 0; i < calls; ++i) work(i, i % 2 == 0 ? even : odd);
  fact(5);
  return unused;
}

static void* run_held(void* unused) {
  hold();
  return unused;
}

int main(int argc, char** argv) {
  const long threads = argc > 1 ? atol(argv[1]) : 1, held = argc > 3 ? atol(argv[3]) : 0;
  calls = argc > 2 ? atol(argv[2]) : 1;
  if (argc > 6) release = argv[6];
  while (argc > 5 && access(argv[4], F_OK) != 0) usleep(10000);
  pthread_t ids[64];
  for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, run, NULL);
  for (long i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  for (long i = 0; i < held; ++i) pthread_create(&ids[i], NULL, run_held, NULL);
  while (holds < held) usleep(1000);
  printf("work %ld fact %ld hold %ld\n", works, facts, holds);
  fflush(stdout);
  if (argc > 5) fclose(fopen(argv[5], "w"));
  for (long i = 0; argc > 5 && i < held; ++i) pthread_join(ids[i], NULL);
}
