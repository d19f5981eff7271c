// held_pages THREADS ROUNDS: in each round, each thread calls tick() with a page that comes when all threads wait for
// theirs, on one CPU. A probe that reads the page is so entered by all threads before one goes on.
//
// The truth: thread I calls tick() ROUNDS times, with N = 1000 + I, and "text of N" in its page; at byte 64 of it, N.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kMaxThreads = 64 };
static int threads, rounds;
static char* area;
static pthread_barrier_t all_wait;

// The arguments can be told from N, which a probe compares after it has read the text.
__attribute__((noinline)) void tick(const char* text, long n, long n_by_7, long n_squared) {
  asm volatile("" : : "r"(text), "r"(n), "r"(n_by_7), "r"(n_squared) : "memory");
}

static char* page_of(int round, long thread) { return area + (round * threads + thread) * kPage; }

static void* call(void* argument) {
  const long thread = (long)argument;
  const long n = 1000 + thread;
  for (int round = 0; round < rounds; round++) {
    pthread_barrier_wait(&all_wait);
    char* page = page_of(round, thread);
    tick(page, n, n * 7, n * n);
    if (atol(page + strlen("text of ")) != n) abort();
  }
  return 0;
}

static void deliver(int file, uint64_t address) {
  static char page[kPage] __attribute__((aligned(kPage)));
  const long n = 1000 + (long)((address - (uint64_t)area) / kPage) % threads;
  snprintf(page, sizeof(page), "text of %ld", n);
  memcpy(page + 64, &n, sizeof(n));
  struct uffdio_copy copy = {.dst = address, .src = (uint64_t)page, .len = kPage};
  if (ioctl(file, UFFDIO_COPY, &copy) != 0) exit(1);
}

int main(int argc, char** argv) {
  threads = argc > 1 ? atoi(argv[1]) : 2;
  rounds = argc > 2 ? atoi(argv[2]) : 1;
  if (threads < 1 || threads > kMaxThreads || rounds < 1) return 2;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof(one), &one);
  const size_t bytes = (size_t)threads * rounds * kPage;
  area = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register held = {.range = {(uint64_t)area, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (file < 0 || ioctl(file, UFFDIO_API, &api) != 0 || ioctl(file, UFFDIO_REGISTER, &held) != 0) return 77;
  pthread_barrier_init(&all_wait, 0, threads);
  pthread_t ids[kMaxThreads];
  for (long i = 0; i < threads; i++) pthread_create(&ids[i], 0, call, (void*)i);
  for (int round = 0; round < rounds; round++) {
    uint64_t wanted[kMaxThreads];
    for (int i = 0; i < threads; i++) {
      struct uffd_msg message;
      if (read(file, &message, sizeof(message)) != sizeof(message)) return 1;
      wanted[i] = message.arg.pagefault.address & ~(uint64_t)(kPage - 1);
    }
    for (int i = 0; i < threads; i++) deliver(file, wanted[i]);
  }
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
  return 0;
}
