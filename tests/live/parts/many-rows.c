// A program with a line table of five million rows in its debug information.
asm(R"(
  .text
  .globl work
  .type work, @function
work: dec %rdi
  jnz work
  ret
  .size work, . - work
  .pushsection .debug_abbrev, "", @progbits
  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x10, 0x17, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 0; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 0
  .popsection
  .pushsection .debug_info, "", @progbits
  .long end - begin
begin: .short 4; .long 0; .byte 8
  .uleb128 1; .string "many-rows.c"; .long 0; .quad work, 16
  .uleb128 2; .string "work"; .quad work, 16
  .uleb128 0
end:
  .popsection
  .pushsection .debug_line, "", @progbits
  .long lines_end - lines
lines: .short 4; .long program - files
files: .byte 1, 1, 1, -5, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0
  .string "many-rows.c"; .byte 0, 0, 0, 0
program: .byte 0, 9, 2; .quad work
  .fill 5000000, 1, 0x14
  .byte 0, 1, 1
lines_end:
  .popsection
)");

void work(long n);

int main(void) {
  for (;;) work(1000000);
}
