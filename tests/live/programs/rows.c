// rows [COUNT]: calls leaf() by way of functions without frame pointers, COUNT times; 0: without end. ROWS is the
// number of unwind rows of one of them, a row for each instruction.
#include <stdlib.h>

void outer(void);

#define TEXT(value) #value
#define ROWS_OF(count) TEXT(count)

// A function that calls another one, with the stack lower, and two rows for each of the pairs in `body`.
#ifdef __aarch64__
#define FUNCTION(name, body, callee)                                                                \
  ".globl " #name "\n.type " #name ", %function\n" #name ":\n.cfi_startproc\n" body                \
  "str x30, [sp, -32]!\n.cfi_adjust_cfa_offset 32\n.cfi_offset x30, -32\n" callee                   \
  "ldr x30, [sp], 32\n.cfi_adjust_cfa_offset -32\n.cfi_restore x30\n"                              \
  "ret\n.cfi_endproc\n.size " #name ", . - " #name "\n"
#define PUSH "str x0, [sp, -16]!\n.cfi_adjust_cfa_offset 16\n"
#define POP "ldr x0, [sp], 16\n.cfi_adjust_cfa_offset -16\n"
#define CALL "bl "
#define GETPPID "mov x8, 173\nsvc 0\n"
#else
#define FUNCTION(name, body, callee)                                                \
  ".globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" body \
  "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n" callee                               \
  "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"                                     \
  "ret\n.cfi_endproc\n.size " #name ", . - " #name "\n"
#define PUSH "push %rax\n.cfi_adjust_cfa_offset 8\n"
#define POP "pop %rax\n.cfi_adjust_cfa_offset -8\n"
#define CALL "call "
#define GETPPID "mov $110, %eax\nsyscall\n"
#endif

#define PAIRS ".rept " ROWS_OF(ROWS) " / 2\n" PUSH POP ".endr\n"

__asm__(".text\n" FUNCTION(leaf, "", GETPPID) FUNCTION(inner, "", CALL "leaf\n")
            FUNCTION(middle, PAIRS, CALL "inner\n") FUNCTION(outer, "", CALL "middle\n"));

// One call of outer() in the code: a compiler that knows `count` may copy the loop.
int main(int argc, char** argv) {
  volatile long count = argc > 1 ? atol(argv[1]) : 1;
  do outer();
  while (--count != 0);
  return 0;
}
