// A library that makes N system calls, in the leaf of two functions that are named after NAME. Its code refers to
// nothing outside of it, so that a copy runs anywhere.
#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)

#ifdef PAD
__asm__(".text\n.zero 64\n");
#endif

// getppid(2)
static __attribute__((noinline)) long NAMED(NAME, _leaf)(long number) {
  __asm__ volatile("" : : "r"(__builtin_frame_address(0)));  // so that it has one
#ifdef __x86_64__
  long result = 110;
  __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
#else
  register long result __asm__("x0");
  register long call __asm__("x8") = 173;
  __asm__ volatile("svc 0" : "=r"(result) : "r"(call) : "memory");
#endif
  return result + number;
}

static __attribute__((noinline)) long NAMED(NAME, _loop)(long count) {
  long sum = 0;
  for (long i = 0; i < count; ++i) sum += NAMED(NAME, _leaf)(i);
  return sum;
}

long run(long count) { return NAMED(NAME, _loop)(count) + 1; }
