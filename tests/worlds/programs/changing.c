// changing DIRECTORY PLAN...: runs a plan, in which threads call step() and leap() on one CPU while their world
// changes.
//
// A PLAN is a thread; the first thread runs the first one. Its words, joined by commas, are LETTER COUNT:
//   c  calls step() with a text in memory
//   p  the same, with texts in pages of a file that are not mapped yet
//   u  the same, with texts in pages that another thread delivers later (userfaultfd)
//   r  calls step() once, which calls itself COUNT times
//   j  calls leap() COUNT times, which jumps and does not return
//   h  sends itself COUNT signals, whose handler calls step(), with SIGNAL_STACK on a stack of its own
//   f  the same as c in a child process
//   v  the same as c in a child process that executes the program anew
//   t  the same as c in another thread, which ends
//   l  loads DIRECTORY/one.so, calls its one() COUNT times and unloads it; then two.so with two(), as a rule at the
//      same address
//   m  copies the code of tock() into new memory and calls the copy COUNT times
//   e  executes the program anew with the words after it; there is one thread then
// The first thread ends by pthread_exit() if the DIRECTORY ends with "/.", else it waits for the others. The process
// ends with the last thread of the plan.
//
// The truth: each call has a number, 1000 * I for the I-th thread of the plan and counted from there, and the text
// "text N" with N = the number % 5. step(n, text, n * 7) returns n * 3 + 1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kTexts = 5, kMostPages = 4096 };
static char texts[kTexts][16];
static const char* directory;
static char self[4096];
static int held = -1;    // the userfaultfd
static char* held_area;  // its pages
static volatile int held_used;
static __thread long number;
static __thread sigjmp_buf back;

__attribute__((noinline, noclone)) long step(long n, const char* text, long n_by_7, long depth) {
  asm volatile("" : : "r"(n), "r"(text), "r"(n_by_7) : "memory");
  if (depth > 0) step(n + 1, texts[(n + 1) % kTexts], (n + 1) * 7, depth - 1);
  asm volatile("" : : : "memory");
  return n * 3 + 1;
}

__attribute__((noinline, noclone)) long leap(long n) {
  asm volatile("" : "+r"(n) : : "memory");
  if (n < 0) return n;  // not in any plan
  siglongjmp(back, 1);
}

// Position independent, and without calls.
__attribute__((noinline, noclone, aligned(64))) long tock(long n) {
  asm volatile("nop; nop; nop; nop" : : "r"(n) : "memory");
  return n + 1;
}
__attribute__((noinline, noclone, aligned(64))) void tock_end(void) { asm volatile("nop"); }

static void call(const char* text) {
  const long n = number++;
  if (step(n, text ? text : texts[n % kTexts], n * 7, 0) != n * 3 + 1) abort();
}

static void on_signal(int signal) {
  (void)signal;
  call(NULL);
}

static void fail(const char* what) {
  perror(what);
  exit(3);
}

static void* deliver(void* unused) {
  static char page[kPage] __attribute__((aligned(kPage)));
  struct uffd_msg message;
  while (read(held, &message, sizeof(message)) == sizeof(message)) {
    const uint64_t address = message.arg.pagefault.address & ~(uint64_t)(kPage - 1);
    memcpy(page, held_area + kMostPages * (size_t)kPage + (address - (uint64_t)held_area) / kPage * 16, 16);
    for (int i = 0; i < 20; i++) sched_yield();
    struct uffdio_copy copy = {.dst = address, .src = (uint64_t)page, .len = kPage};
    ioctl(held, UFFDIO_COPY, &copy);
  }
  return unused;
}

static int hold_pages(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (held < 0) {
    const size_t bytes = kMostPages * (size_t)kPage;
    held_area = mmap(0, bytes + kMostPages * 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    held = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register area = {.range = {(uint64_t)held_area, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t id;
    if (held < 0 || ioctl(held, UFFDIO_API, &api) != 0 || ioctl(held, UFFDIO_REGISTER, &area) != 0 ||
        pthread_create(&id, 0, deliver, 0) != 0)
      fail("userfaultfd");
  }
  pthread_mutex_unlock(&lock);
  return 0;
}

static void call_with_held_pages(long count) {
  hold_pages();
  for (long i = 0; i < count; i++) {
    const int page = __sync_fetch_and_add(&held_used, 1);
    if (page >= kMostPages) fail("pages");
    strcpy(held_area + kMostPages * (size_t)kPage + page * 16, texts[number % kTexts]);
    call(held_area + page * (size_t)kPage);
  }
}

static void call_with_file(long count) {
  char path[4200];
  snprintf(path, sizeof(path), "%s/pages", directory);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(path);
  char* area = mmap(0, kTexts * kPage, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  for (long i = 0; i < count; i++) {
    madvise(area, kTexts * kPage, MADV_DONTNEED);
    call(area + number % kTexts * kPage);
  }
  munmap(area, kTexts * kPage);
}

static void call_library(const char* name, long count) {
  char path[4200];
  snprintf(path, sizeof(path), "%s/%s.so", directory, name);
  void* library = dlopen(path, RTLD_NOW);
  long (*function)(long) = library ? (long (*)(long))dlsym(library, name) : NULL;
  if (!function) fail(dlerror());
  for (long i = 0; i < count; i++) function(number++);
  dlclose(library);
}

static void call_copy(long count) {
  const size_t bytes = (size_t)((char*)tock_end - (char*)tock);
  char* area = mmap(0, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(area, (void*)tock, bytes);
  mprotect(area, kPage, PROT_READ | PROT_EXEC);
  for (long i = 0; i < count; i++) ((long (*)(long))area)(number++);
  munmap(area, kPage);
}

static void* call_in_thread(void* given) {
  const long* wanted = given;
  number = wanted[0];
  for (long i = 0; i < wanted[1]; i++) call(NULL);
  return 0;
}

static void execute(const char* plan, long from) {
  char start[64];
  snprintf(start, sizeof(start), "CHANGING_FROM=%ld", from);
  putenv(start);
  execl(self, self, directory, plan, (char*)0);
  fail("exec");
}

static void run_child(long count, int is_executed) {
  char plan[32];
  snprintf(plan, sizeof(plan), "c%ld", count);
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    if (is_executed) execute(plan, number);
    for (long i = 0; i < count; i++) call(NULL);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) fail("child");
  number += count;
}

static void leap_often(long count) {
  for (volatile long i = 0; i < count; i++) {
    const long n = number++;
    if (sigsetjmp(back, 0) == 0) leap(n);
  }
}

static void run(const char* plan) {
#ifdef SIGNAL_STACK
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  sigaltstack(&stack, 0);
#endif
  while (*plan != '\0') {
    const char word = *plan;
    char* end = NULL;
    const long count = strtol(plan + 1, &end, 10);
    plan = *end == ',' ? end + 1 : end;
    switch (word) {
      case 'c':
        for (long i = 0; i < count; i++) call(NULL);
        break;
      case 'p': call_with_file(count); break;
      case 'u': call_with_held_pages(count); break;
      case 'r':
        step(number, texts[number % kTexts], number * 7, count);
        number += count + 1;
        break;
      case 'j': leap_often(count); break;
      case 'h':
        for (long i = 0; i < count; i++) pthread_kill(pthread_self(), SIGUSR1);
        break;
      case 'f': run_child(count, 0); break;
      case 'v': run_child(count, 1); break;
      case 't': {
        const long wanted[] = {number, count};
        pthread_t id;
        if (pthread_create(&id, 0, call_in_thread, (void*)wanted) != 0) fail("thread");
        pthread_join(id, 0);
        number += count;
        break;
      }
      case 'l':
        call_library("one", count);
        call_library("two", count);
        break;
      case 'm': call_copy(count); break;
      case 'e': execute(plan, number); break;
      default: fail("plan");
    }
  }
}

struct planned {
  const char* plan;
  long from;
};
static int running;
static void* run_planned(void* given) {
  const struct planned* planned = given;
  number = planned->from;
  run(planned->plan);
  if (__sync_sub_and_fetch(&running, 1) == 0) exit(0);
  return 0;
}

int main(int argc, char** argv) {
  enum { kMostThreads = 32 };
  if (argc < 3 || argc - 2 > kMostThreads) return 2;
  directory = argv[1];
  self[readlink("/proc/self/exe", self, sizeof(self) - 1)] = '\0';
  for (int i = 0; i < kTexts; i++) snprintf(texts[i], sizeof(texts[i]), "text %d", i);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  sched_setaffinity(0, sizeof(one), &one);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, 0);
  const char* from = getenv("CHANGING_FROM");
  static struct planned planned[kMostThreads];
  pthread_t ids[kMostThreads];
  for (int i = 0; i < argc - 2; i++)
    planned[i] = (struct planned){argv[i + 2], i == 0 && from ? atol(from) : 1000L * i};
  running = argc - 2;
  for (int i = 1; i < argc - 2; i++)
    if (pthread_create(&ids[i], 0, run_planned, &planned[i]) != 0) fail("thread");
  const int is_first_to_end = directory[strlen(directory) - 1] == '.';
  run_planned(&planned[0]);
  if (is_first_to_end) pthread_exit(0);
  for (int i = 1; i < argc - 2; i++) pthread_join(ids[i], 0);
  return 0;
}
