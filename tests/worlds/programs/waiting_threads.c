// waiting_threads THREADS: each thread calls tick() with a page that comes at the end only, on one CPU. When all wait, the
// main thread calls tick("plain") 1000 times there. Then the pages come, with "late".
// waiting_threads keys ROUNDS: in each round, add(A), then a thread calls tick_key(A, page), whose page is held back; while it
// waits, the main thread calls drop(A) and add(B). Then the page comes. A is 2 * ROUND + 1, B is one more.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kMaxPages = 64, kPlain = 1000 };
static char* area;
static int file;
static pthread_t ids[kMaxPages];

__attribute__((noinline)) void tick(const char* text) { asm volatile("" : : "r"(text) : "memory"); }
__attribute__((noinline)) void tick_key(long key, const char* text) { asm volatile("" : : "r"(key), "r"(text) : "memory"); }
__attribute__((noinline)) void add(long key) { asm volatile("" : : "r"(key) : "memory"); }
__attribute__((noinline)) void drop(long key) { asm volatile("" : : "r"(key) : "memory"); }

static char* page(long i) { return area + i * kPage; }

static void* call(void* number) {
  char* text = page((long)number);
  tick(text);
  if (strcmp(text, "late") != 0) abort();
  return 0;
}

static void* call_key(void* round) {
  char* text = page((long)round);
  tick_key(2 * (long)round + 1, text);
  if (strcmp(text, "late") != 0) abort();
  return 0;
}

static void wait_for_fault(void) {
  struct uffd_msg message;
  if (read(file, &message, sizeof(message)) != sizeof(message)) exit(1);
}

static void deliver(long number) {
  static char content[kPage] __attribute__((aligned(kPage))) = "late";
  struct uffdio_copy copy = {.dst = (uint64_t)page(number), .src = (uint64_t)content, .len = kPage};
  if (ioctl(file, UFFDIO_COPY, &copy) != 0) exit(1);
}

static void run_threads(int threads) {
  for (long i = 0; i < threads; i++) {
    pthread_create(&ids[i], 0, call, (void*)i);
    wait_for_fault();
  }
  char plain[] = "plain";  // in a page that is there
  for (int i = 0; i < kPlain; i++) tick(plain);
  for (int i = 0; i < threads; i++) deliver(i);
  for (int i = 0; i < threads; i++) pthread_join(ids[i], 0);
}

static void run_keys(int rounds) {
  for (long round = 0; round < rounds; round++) {
    const long a = 2 * round + 1;
    add(a);
    pthread_create(&ids[round], 0, call_key, (void*)round);
    wait_for_fault();
    drop(a);
    add(a + 1);
    deliver(round);
    pthread_join(ids[round], 0);
  }
}

int main(int argc, char** argv) {
  const int is_keys = argc > 2;
  const int count = argc > 1 ? atoi(argv[argc - 1]) : 0;
  if (count < 1 || count > kMaxPages) return 2;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof(one), &one);
  const size_t bytes = (size_t)count * kPage;
  area = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  file = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
  struct uffdio_api api = {.api = UFFD_API};
  struct uffdio_register held = {.range = {(uint64_t)area, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
  if (file < 0 || ioctl(file, UFFDIO_API, &api) != 0 || ioctl(file, UFFDIO_REGISTER, &held) != 0) return 77;
  (is_keys ? run_keys : run_threads)(count);
  return 0;
}
