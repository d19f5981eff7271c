// rows [COUNT]: calls leaf() by way of functions without frame pointers, COUNT times; 0: without end. ROWS is the
// number of unwind rows of one of them, a row for each byte of its code.
#include <stdlib.h>

void outer(void);

#define TEXT(value) #value
#define ROWS_OF(count) TEXT(count)

// A function that calls another one, with the stack `bytes` lower.
#define FUNCTION(name, body, callee)                                                \
  ".globl " #name "\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" body \
  "sub $24, %rsp\n.cfi_adjust_cfa_offset 24\n" callee                               \
  "add $24, %rsp\n.cfi_adjust_cfa_offset -24\n"                                     \
  "ret\n.cfi_endproc\n.size " #name ", . - " #name "\n"

#define PAIRS \
  ".rept " ROWS_OF(ROWS) " / 2\npush %rax\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\n.endr\n"

__asm__(".text\n" FUNCTION(leaf, "", "mov $110, %eax\nsyscall\n")  // getppid
        FUNCTION(inner, "", "call leaf\n") FUNCTION(middle, PAIRS, "call inner\n")
            FUNCTION(outer, "", "call middle\n"));

int main(int argc, char** argv) {
  long count = argc > 1 ? atol(argv[1]) : 1;
  do outer();
  while (--count != 0);
  return 0;
}
