// A program with functions that no uprobe can be put on: what a hostile program has its symbols say.
#include <stdio.h>
#include <unistd.h>

#define FUNCTION(name, bytes, section)                                                                         \
  asm(".pushsection " section "\n.globl " #name "\n.type " #name ", @function\n.size " #name ", 16\n" #name ": " \
      bytes "\n.popsection");
FUNCTION(bad_int, ".fill 16, 1, 0xcc", ".text")
FUNCTION(bad_opcode, ".byte 0x0e\n.fill 15, 1, 0x90", ".text")
FUNCTION(bad_prefixes, ".fill 16, 1, 0x66", ".text")
FUNCTION(bad_memory, ".zero 16", ".bss")

__attribute__((noinline)) void good(void) { asm volatile(""); }
__attribute__((noinline)) void good_too(void) { asm volatile(""); }

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) {  // the kernel looks at the places while a process has them in memory
    printf("%d\n", getpid());
    fflush(stdout);
    pause();
  }
  good();
  good_too();
  return 0;
}
