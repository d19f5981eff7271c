// "deep": makes ten system calls 300 calls deep, and ten 10 calls deep. "made": makes twenty in code of its own making,
// which has no frame pointer.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) static int nest(int depth) {
  const int out = depth == 0 ? (int)getppid() : nest(depth - 1);
  __asm__ volatile("" : : "r"(out) : "memory");
  return out + 1;
}

#ifdef __x86_64__
// push %rbp; xor %ebp,%ebp; mov $110,%eax; syscall; pop %rbp; ret
static const unsigned char code[] = {0x55, 0x31, 0xed, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x5d, 0xc3};
#else
// stp x29, x30, [sp, #-16]!; mov x29, #0; mov x8, #173; svc #0; ldp x29, x30, [sp], #16; ret
static const unsigned int code[] = {0xa9bf7bfd, 0xd280001d, 0xd28015a8, 0xd4000001, 0xa8c17bfd, 0xd65f03c0};
#endif

int main(int argc, char** argv) {
  if (strcmp(argv[argc - 1], "deep") == 0) {
    for (int i = 0; i < 10; ++i) nest(300);
    for (int i = 0; i < 10; ++i) nest(10);
    return 0;
  }
  void* made = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) return 1;
  memcpy(made, code, sizeof(code));
  __builtin___clear_cache((char*)made, (char*)made + sizeof(code));
  for (int i = 0; i < 20; ++i) ((void (*)(void))made)();
  return 0;
}
