// A program whose 20,000 functions share a list of ranges: 200,000 base addresses, and no range.
asm(R"(
  .text
  .globl work
  .type work, @function
work: dec %rdi
  jnz work
  ret
  .size work, . - work
  .pushsection .debug_abbrev, "", @progbits
  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 0; .uleb128 0x55, 0x17, 0, 0
  .uleb128 0
  .popsection
  .pushsection .debug_info, "", @progbits
  .long end - begin
begin: .short 4; .long 0; .byte 8
  .uleb128 1; .string "base-addresses.c"; .quad work, 16
  .rept 20000
  .uleb128 2; .long 0
  .endr
  .uleb128 0
end:
  .popsection
  .pushsection .debug_ranges, "", @progbits
  .rept 200000
  .quad -1, 0
  .endr
  .quad 0, 0
  .popsection
)");

void work(long n);

int main(void) {
  for (;;) work(1000000);
}
