// Allocates in all ways, frees most of it in another thread, and says what it has kept.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void* given[1000];

__attribute__((noinline)) void* keep_small(void) { return malloc(100); }
__attribute__((noinline)) void* keep_zeroed(void) { return calloc(10, 30); }
__attribute__((noinline)) void* keep_aligned(void) {
  void* block;
  return posix_memalign(&block, 64, 640) ? NULL : block;
}
__attribute__((noinline)) void* keep_grown(void) { return realloc(malloc(10), 5000); }

static void* free_all(void* unused) {
  for (int i = 0; i < 1000; i++) free(given[i]);
  return unused;
}

int main(void) {
  void* volatile kept;
  for (int i = 0; i < 500; i++) kept = keep_small();
  for (int i = 0; i < 40; i++) kept = keep_zeroed();
  for (int i = 0; i < 30; i++) kept = keep_aligned();
  for (int i = 0; i < 20; i++) kept = keep_grown();
  (void)kept;
  for (int i = 0; i < 1000; i++) given[i] = malloc(i);
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_all, NULL)) return 1;
  pthread_join(thread, NULL);
  if (fork() == 0) {  // a copy frees what is not its own
    free(keep_small());
    _exit(0);
  }
  return 0;
}
