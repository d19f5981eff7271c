// Variables that each thread has of its own.
#include <pthread.h>

__thread char before[100];
volatile int sink;

__attribute__((noipa)) static int next(int by) {
  static __thread long calls = 1000;
  static __thread char text[8] = "mine";
  calls += by;
  text[0] = (char)('a' + by);
  sink += (int)calls + text[1] + before[3];
  return sink;
}

static void* run(void* argument) {
  next(7);
  next(7);
  return argument;
}

int main(void) {
  pthread_t thread;
  next(1);
  if (pthread_create(&thread, 0, run, 0) == 0) pthread_join(thread, 0);
  next(1);
  return 0;
}
