// jit FILE [-]: makes a function at run time, as a JIT does, and says its name in /tmp/perf-PID.map, or with `-` does not;
// it calls `reached`. Stays until FILE is there: whoever traces this looks at the names.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline, used)) void reached(void) { usleep(1000); }

int main(int argc, char** argv) {
#ifdef __aarch64__
  // stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret
  static const unsigned kCode[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#else
  // push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret
  static const unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#endif
  char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  memcpy(code + 64, kCode, sizeof(kCode));
  __builtin___clear_cache(code + 64, code + 64 + sizeof(kCode));
  char path[64];
  snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
  FILE* names = fopen(path, "w");
  if (names == NULL) return 1;
  if (argc < 3) fprintf(names, "%lx %zx Shop.made_while_running\n", (unsigned long)(code + 64), sizeof(kCode));
  fclose(names);
  void (*made)(void (*)(void));
  const char* begin = code + 64;
  memcpy(&made, &begin, sizeof(made));  // ISO C has no conversion for it
  made(reached);
  while (argc > 1 && access(argv[1], F_OK) != 0) usleep(1000);
  unlink(path);
}
