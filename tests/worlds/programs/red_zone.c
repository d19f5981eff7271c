// red_zone: functions that keep their argument below the stack pointer while they run a `nop` of some length. x86-64 only.
//
// The truth: each function is called 1000 times, and returns its argument; red_zone prints how often one does not. The
// probes of USDT, and line MARKED, are at two places that are passed 1000 times each: a `nop` of one byte, and one of
// five.
#include <stdio.h>
#include <string.h>

enum { kCalls = 1000 };

#define NOP1 "nop\n"
#define NOP5 ".byte 0x0f,0x1f,0x44,0,0\n"
#define NOP10 ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n"
#define PROBE                                                                                                    \
  "990: .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 992f-991f, 994f-993f, 3\n"                 \
  "991: .asciz \"stapsdt\"\n 992: .balign 4\n 993: .8byte 990b, 0, 0\n .asciz \"red\"\n .asciz \"zone\"\n"       \
  ".asciz \"\"\n 994: .balign 4\n .popsection\n"
// NAME, and NAME_label, a symbol at its nop.
#define LEAF(name, probe, nop)                                                                                   \
  long name(long x);                                                                                             \
  __asm__(".text\n .globl " name_of(name) ", " name_of(name##_label) "\n .type " name_of(name) ",@function\n"    \
          ".type " name_of(name##_label) ",@function\n" name_of(name) ": movq %rdi,-8(%rsp)\n" probe             \
          name_of(name##_label) ": " nop "1: movq -8(%rsp),%rax\n ret\n .size " name_of(name) ",.-" name_of(name)\
          "\n .size " name_of(name##_label) ",1b-" name_of(name##_label) "\n");
#define name_of(name) #name

LEAF(leaf, "", NOP5)
LEAF(leaf_short, "", NOP1)
LEAF(ten, "", NOP10)
LEAF(usdt_short, PROBE, NOP1)
LEAF(usdt_long, PROBE, NOP5)

// A nop as the first instruction, before anything is kept; and a part of a function elsewhere.
long entry(long x);
long split(long x);
__asm__(
    ".globl entry, split, split.cold\n .type entry,@function\n .type split,@function\n .type split.cold,@function\n"
    "entry: " NOP5 "movq %rdi,%rax\n ret\n .size entry,.-entry\n"
    "split: movq %rdi,-8(%rsp)\n jmp split.cold\n .size split,.-split\n"
    "split.cold: " NOP5 "movq -8(%rsp),%rax\n ret\n .size split.cold,.-split.cold\n");

static inline __attribute__((always_inline)) void mark(int is_long) {
  // clang-format off
  if (is_long) { asm volatile(NOP5 : : : "memory"); } else { asm volatile(NOP1 : : : "memory"); }  // MARKED
  // clang-format on
}

__attribute__((noinline)) long marked_short(volatile long x) {
  mark(0);
  return x;
}

__attribute__((noinline)) long marked_long(volatile long x) {
  mark(1);
  return x;
}

int main(void) {
  long (*const functions[])(long) = {leaf, leaf_short, ten, usdt_short, usdt_long, entry, split, marked_short, marked_long};
  int wrong = 0;
  for (long i = 0; i < kCalls; i++)
    for (unsigned k = 0; k < sizeof(functions) / sizeof(functions[0]); k++) wrong += functions[k](i) != i;
  printf("wrong results: %d\n", wrong);
  return 0;
}
