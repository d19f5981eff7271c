// sender CALLS [THREADS]: makes CALLS calls of getppid(2), spread over THREADS threads, each by way of `work`.
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t all_are_there;

__attribute__((noinline, used)) long work(long number) { return syscall(SYS_getppid) + number; }

static void* send_calls(void* argument) {
  const long calls = (long)argument;
  pthread_barrier_wait(&all_are_there);
  long sum = 0;
  for (long i = 0; i < calls; ++i) sum += work(i);
  return (void*)sum;
}

int main(int argc, char** argv) {
  const long calls = argc > 1 ? atol(argv[1]) : 1, threads = argc > 2 ? atol(argv[2]) : 1;
  pthread_t* started = calloc((size_t)threads, sizeof(*started));
  if (started == NULL || pthread_barrier_init(&all_are_there, NULL, (unsigned)threads) != 0) return 1;
  for (long i = 1; i < threads; ++i)
    if (pthread_create(&started[i], NULL, send_calls, (void*)(calls / threads)) != 0) return 1;
  send_calls((void*)(calls - (threads - 1) * (calls / threads)));
  for (long i = 1; i < threads; ++i) pthread_join(started[i], NULL);
  return 0;
}
