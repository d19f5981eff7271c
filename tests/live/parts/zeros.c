// A program with 64 MB of zeros in its debug information, which take 64 KB if they are compressed.
asm(R"(
  .pushsection .debug_abbrev, "", @progbits
  .uleb128 1, 0x11; .byte 0; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 0
  .popsection
  .pushsection .debug_info, "", @progbits
  .long end - begin
begin: .short 4; .long 0; .byte 8
  .uleb128 1; .string "zeros.c"; .quad work, 16
end:
  .popsection
  .pushsection .debug_str, "", @progbits
  .fill 8000000, 8, 0
  .popsection
)");

void work(long n) {
  while (--n > 0) asm volatile("");
}

int main(void) {
  for (;;) work(1000000);
}
